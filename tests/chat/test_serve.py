"""The server, through the official client, over real sockets."""

import concurrent.futures
import http.client
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from hotgrid.chat import ChatMessage, Engine, LanguageModel, Sampling, generate, render
from hotgrid.chat._generate._sampling import Likelihood
from hotgrid.chat._generate._text import Piece
from hotgrid.chat.serve import ChatApp
from hotgrid.chat.serve._answers import Answers, Counts
from hotgrid.web import PageServer

from .tiny import byte_encoding, random_language

LANGUAGE = random_language(seed=4, context=256)
HI: list[Any] = [{"role": "user", "content": "Hi"}]


class Served:
    """A server and its engine."""

    def __init__(self, language: LanguageModel = LANGUAGE, key: str | None = None, **more: Any):
        self.engine = Engine(language, **more).start()
        self.server: PageServer = ChatApp(self.engine, key).serve(port=0).start()
        self.base = f"http://127.0.0.1:{self.server.port}/v1"
        self._clients: list[openai.OpenAI] = []

    def client(self, key: str = "none") -> openai.OpenAI:
        made = openai.OpenAI(base_url=self.base, api_key=key, max_retries=0, timeout=60)
        self._clients.append(made)
        return made

    def post(self, body: bytes, path: str = "/v1/chat/completions", **headers: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found

    def close(self) -> None:
        for client in self._clients:
            client.close()
        self.engine.stop()
        self.server.stop()


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    running = Served(slots=4)
    yield running
    running.close()


def alone(language: LanguageModel = LANGUAGE, **way: Any) -> tuple[str, str | None, int]:
    """Text, finish and count that `generate` gives for the conversation."""
    tokens, _ = render(language.encoding, [ChatMessage("user", "Hi")], reply=True)
    pieces = list(generate(language, tokens, Sampling(**way)))
    text = "".join(piece.text for piece in pieces)
    return text, pieces[-1].finish, sum(len(piece.tokens) for piece in pieces)


def test_models(served: Served) -> None:
    client = served.client()
    assert [model.id for model in client.models.list()] == ["default", "tiny"]
    assert client.models.retrieve("default").id == "default"


def test_conversation_is_that_of_generate(served: Served) -> None:
    text, finish, count = alone(temperature=1.0, seed=7, max_tokens=20)
    answer = served.client().chat.completions.create(
        model="default", messages=HI, seed=7, max_tokens=20
    )
    assert answer.choices[0].message.content == text
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].finish_reason == finish
    usage = answer.usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens) == (6, count)
    assert usage.total_tokens == 6 + count


def test_stream_is_the_same_text_with_role_finish_and_usage(served: Served) -> None:
    text, finish, count = alone(temperature=1.0, seed=7, max_tokens=30)
    stream = served.client().chat.completions.create(
        model="tiny",
        messages=HI,
        seed=7,
        max_completion_tokens=30,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    said = [chunk.choices[0] for chunk in chunks if chunk.choices]
    assert said[0].delta.role == "assistant"
    assert "".join(choice.delta.content or "" for choice in said) == text
    assert [choice.finish_reason for choice in said if choice.finish_reason] == [finish]
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == count
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_stop_and_greedy(served: Served) -> None:
    whole, _, _ = alone(temperature=0, max_tokens=40)
    stop = whole[7:9]
    answer = served.client().chat.completions.create(
        model="default", messages=HI, temperature=0, max_tokens=40, stop=[stop, "never there"]
    )
    assert answer.choices[0].message.content == whole[: whole.index(stop)]
    assert answer.choices[0].finish_reason == "stop"


def test_several_choices_differ_and_the_first_is_that_of_the_seed(served: Served) -> None:
    text, _, _ = alone(temperature=1.0, seed=7, max_tokens=12)
    ask: dict[str, Any] = {"model": "default", "messages": HI, "seed": 7, "max_tokens": 12}
    answer = served.client().chat.completions.create(n=3, **ask)
    texts = [choice.message.content for choice in answer.choices]
    assert texts[0] == text
    assert len(set(texts)) == 3
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    streamed = ["", "", ""]
    for chunk in served.client().chat.completions.create(n=3, stream=True, **ask):
        streamed[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert streamed == texts


def test_logprobs_of_conversations_and_completions(served: Served) -> None:
    answer = served.client().chat.completions.create(
        model="default", messages=HI, temperature=0, max_tokens=5, logprobs=True, top_logprobs=2
    )
    logs = answer.choices[0].logprobs
    assert logs is not None
    assert logs.content is not None
    assert len(logs.content) == 5
    for each in logs.content:
        assert each.top_logprobs[0].logprob == pytest.approx(each.logprob)
        assert each.bytes == each.top_logprobs[0].bytes
    completion = served.client().completions.create(
        model="default", prompt="abc", temperature=0, max_tokens=4, logprobs=2
    )
    found = completion.choices[0].logprobs
    assert found is not None
    assert found.token_logprobs is not None
    assert found.top_logprobs is not None
    assert len(found.token_logprobs) == 4
    assert max(found.top_logprobs[0].values()) == pytest.approx(found.token_logprobs[0])
    # The first token may begin a character, so the second shows that it does not.
    assert found.text_offset == [0, 0, 2, 3]
    assert len(completion.choices[0].text) == 4


def test_logprobs_of_tokens_that_are_parts_of_characters() -> None:
    encoding = byte_encoding()
    euro = "\N{EURO SIGN}"
    parts = [Likelihood(byte, -1.0, ((byte, -1.0), (0xFF, -2.0))) for byte in euro.encode()]
    parts.append(Likelihood(ord("a"), -1.0, ((ord("a"), -1.0), (ord("b"), -2.0))))
    tokens = tuple(each.token for each in parts)
    answers = Answers("default", encoding, chat=False, counts=Counts(1))
    piece = Piece(f"{euro}a", tokens, tuple(parts), "stop")
    logs = answers.whole([piece])["choices"][0]["logprobs"]
    assert logs["tokens"] == ["bytes:\\xe2", "bytes:\\x82", "bytes:\\xac", "a"]
    assert [len(each) for each in logs["top_logprobs"]] == [2, 2, 2, 2]
    assert logs["text_offset"] == [0, 0, 0, 1]


def test_completions_of_texts_and_tokens(served: Served) -> None:
    encoding = LANGUAGE.encoding
    tokens = [encoding.encode_single_token("<|bos|>"), *encoding.encode_ordinary("abc")]
    pieces = generate(LANGUAGE, tokens, Sampling(temperature=0, max_tokens=9))
    text = "".join(piece.text for piece in pieces)
    ask: dict[str, Any] = {"model": "default", "temperature": 0, "max_tokens": 9}
    prompts: list[Any] = ["abc", tokens, ["abc", "x"]]
    for prompt in prompts:
        answer = served.client().completions.create(prompt=prompt, **ask)
        assert answer.choices[0].text == text
    assert len(answer.choices) == 2
    stream = served.client().completions.create(prompt="abc", stream=True, **ask)
    assert "".join(chunk.choices[0].text for chunk in stream) == text


def test_base_model_continues_the_text() -> None:
    base = random_language(seed=4, context=256, tuned=False)
    served = Served(base)
    try:
        answer = served.client().chat.completions.create(
            model="default", messages=HI, temperature=0, max_tokens=9
        )
        completion = served.client().completions.create(
            model="default", prompt="Hi", temperature=0, max_tokens=9
        )
        assert answer.choices[0].message.content == completion.choices[0].text
    finally:
        served.close()


def test_many_at_once_each_as_alone(served: Served) -> None:
    def ask(seed: int) -> str | None:
        answer = served.client().chat.completions.create(
            model="default", messages=HI, seed=seed, max_tokens=15
        )
        return answer.choices[0].message.content

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        found = list(pool.map(ask, range(12)))
    assert found == [alone(temperature=1.0, seed=s, max_tokens=15)[0] for s in range(12)]


def test_errors_are_those_of_the_client(served: Served) -> None:
    create = served.client().chat.completions.create
    with pytest.raises(openai.NotFoundError, match="default and tiny") as unknown:
        create(model="gpt-9", messages=HI)
    assert unknown.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError, match="at most 255") as long:
        create(model="default", messages=[{"role": "user", "content": "x" * 300}])
    assert long.value.code == "context_length_exceeded"
    with pytest.raises(openai.BadRequestError, match="temperature") as hot:
        create(model="default", messages=HI, temperature=9)
    assert hot.value.param == "temperature"
    with pytest.raises(openai.NotFoundError, match="not part"):
        served.client().embeddings.create(model="default", input="x")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"{", None),
        (b"[]", None),
        (b"\xff", None),
        (b'{"messages": []}', "model"),
        (b'{"model": "default"}', "messages"),
        (b'{"model": "default", "messages": []}', "messages"),
        (b'{"model": "default", "messages": [7]}', "messages"),
        (b'{"model": "default", "messages": [{"role": "cat", "content": "x"}]}', "messages"),
        (b'{"model": "default", "messages": [{"role": "user"}]}', "messages"),
        (b'{"model": "default", "messages": [], "tempratur": 1}', "tempratur"),
        (b'{"model": "default", "messages": [], "tools": [{}]}', "messages"),
    ],
    ids=str,
)
def test_bad_bodies_are_400_in_openais_form(served: Served, body: bytes, param: str) -> None:
    status, answer = served.post(body)
    assert status == 400
    error = json.loads(answer)["error"]
    assert error["param"] == param
    assert error["message"]
    assert error["type"] == "invalid_request_error"


def test_other_hosts_and_origins_are_refused(served: Served) -> None:
    body = json.dumps({"model": "default", "messages": HI, "max_tokens": 1}).encode()
    assert served.post(body)[0] == 200
    own = f"http://127.0.0.1:{served.server.port}"
    assert served.post(body, Origin=own)[0] == 200
    assert served.post(body, Origin="http://evil.example")[0] == 403
    assert served.post(body, Host="evil.example")[0] == 403
    assert served.post(b"x" * (5 << 20))[0] == 413


def test_key() -> None:
    served = Served(key="secret")
    try:
        ask: dict[str, Any] = {"model": "default", "messages": HI, "max_tokens": 2}
        for wrong in ("other", "secre"):
            with pytest.raises(openai.AuthenticationError) as refused:
                served.client(wrong).chat.completions.create(**ask)
            assert refused.value.code == "invalid_api_key"
        assert served.post(b"{}", Authorization="Bearer s\u00e4cret")[0] == 401
        assert served.client("secret").chat.completions.create(**ask).choices
        with pytest.raises(openai.AuthenticationError):
            served.client("other").models.list()
    finally:
        served.close()


def reaches(served: Served, running: int) -> None:
    """Wait until this many requests run and none waits."""
    until = time.monotonic() + 60
    while (load := served.engine.load)["running"] != running or load["waiting"]:
        assert time.monotonic() < until, load
        time.sleep(0.01)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_client_that_goes_ends_its_request(stream: bool) -> None:
    served = Served(random_language(seed=4, context=60_000))
    try:
        ask = {"model": "default", "messages": HI, "temperature": 0, "stream": stream}
        body = json.dumps(ask).encode()
        with socket.create_connection(("127.0.0.1", served.server.port)) as raw:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{served.server.port}"
            raw.sendall(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            reaches(served, 1)
        reaches(served, 0)
        assert served.engine.load["used"] == 0
    finally:
        served.close()


def test_too_many_are_told_to_wait_and_a_stopped_engine_says_so() -> None:
    served = Served(random_language(seed=4, context=60_000), slots=1, queue=1)
    try:
        endless = [served.engine.submit([7], Sampling(temperature=0, max_tokens=50_000))]
        reaches(served, 1)
        endless.append(served.engine.submit([7], Sampling(temperature=0, max_tokens=50_000)))
        with pytest.raises(openai.RateLimitError, match="1 requests wait"):
            served.client().chat.completions.create(model="default", messages=HI)
        served.engine.stop()
        assert {list(request)[-1].finish for request in endless} == {"cancelled"}
        with pytest.raises(openai.InternalServerError, match="stopped"):
            served.client().chat.completions.create(model="default", messages=HI)
    finally:
        served.close()


def test_a_failing_model_is_an_error_of_the_server_in_whole_and_in_streams() -> None:
    language = random_language()
    served = Served(language)
    try:
        language.model.head.linear.weight.data.fill_(float("nan"))
        create = served.client().chat.completions.create
        with pytest.raises(openai.InternalServerError, match="not finite"):
            create(model="default", messages=HI)
        with pytest.raises(openai.APIError, match="not finite"):
            list(create(model="default", messages=HI, stream=True))
    finally:
        served.close()


def test_a_known_path_with_another_method(served: Served) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", served.server.port, timeout=30)
    connection.request("GET", "/v1/completions")
    answer = connection.getresponse()
    text = json.loads(answer.read())["error"]["message"]
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")
    assert text == "GET /v1/completions is not part of this API; use POST"
    connection.close()
    status, body = served.post(b"{}", "/v1/embeddings")
    assert status == 404 and b"POST /v1/embeddings is not part of this API" in body


def test_both_names_of_the_most_tokens(served: Served) -> None:
    with pytest.raises(openai.BadRequestError, match="not both"):
        served.client().chat.completions.create(
            model="default", messages=HI, max_tokens=3, max_completion_tokens=4
        )
