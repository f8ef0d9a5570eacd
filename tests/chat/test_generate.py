"""`generate` against a twin that reads the whole sequence anew for every token."""

from collections.abc import Iterator

import pytest
import torch

from hotgrid.chat import LanguageModel, Piece, Sampling, generate
from hotgrid.errors import ArgumentError, UnstableError

from .tiny import byte_encoding, random_language

PROMPT = [1, 2, 3, 4, 5]
KINDS = {
    "plain": {},
    "window": {"window": "SL", "short": 5},
    "grouped": {"heads": 4, "kv_heads": 2},
    "mixing": {"mixing": True, "value_embeddings": True},
    "llama-like": {"activation": "swiglu", "norm": "rms", "cap": None, "tied": True},
}


@torch.inference_mode()
def twin(language: LanguageModel, prompt: list[int], count: int) -> Iterator[int]:
    """The likeliest token after the whole sequence so far, again and again."""
    tokens = list(prompt)
    for _ in range(count):
        token = int(language.model(torch.tensor([tokens]))[0, -1].argmax())
        if token >= 256:
            return
        tokens.append(token)
        yield token


def tokens_of(pieces: list[Piece]) -> list[int]:
    return [token for piece in pieces for token in piece.tokens]


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_tokens_are_those_of_whole_passes(kind: str) -> None:
    language = random_language(**KINDS[kind])
    pieces = list(generate(language, PROMPT, Sampling(temperature=0, max_tokens=30)))
    assert tokens_of(pieces) == list(twin(language, PROMPT, 30))
    text = language.encoding.decode(tokens_of(pieces))
    assert "".join(piece.text for piece in pieces) == text


@pytest.mark.parametrize("kind", KINDS)
def test_bursts_are_the_same_tokens(kind: str) -> None:
    language = random_language(3, **KINDS[kind])
    ways = [
        Sampling(temperature=0, max_tokens=30),
        Sampling(temperature=1, seed=1, max_tokens=9, repetition=1.3, stop=("a", "e")),
        Sampling(temperature=3, seed=2, top_k=30, top_p=0.9, max_tokens=30),
    ]
    for prompt in ([1], [9] * 63):
        for way in ways:
            plain = list(generate(language, prompt, way))
            found = list(generate(language, prompt, way, burst=7))
            assert found == plain


def test_long_prompts_are_fed_in_parts() -> None:
    language = random_language(context=1200)
    prompt = [token % 256 for token in range(1100)]
    pieces = list(generate(language, prompt, Sampling(temperature=0, max_tokens=4)))
    assert tokens_of(pieces) == list(twin(language, prompt, 4))


def test_seed_decides_the_reply() -> None:
    language = random_language()

    def reply(seed: int | None) -> list[int]:
        return tokens_of(list(generate(language, PROMPT, Sampling(temperature=2, seed=seed))))

    assert reply(1) == reply(1)
    assert len({tuple(reply(None)) for _ in range(4)}) > 1


def test_ends_at_most_tokens_at_the_context_and_at_special_tokens() -> None:
    language = random_language(seed=4)
    hot = Sampling(temperature=100, seed=3, max_tokens=7)
    pieces = list(generate(language, PROMPT, hot))
    assert pieces[-1].finish == "length"
    assert len(tokens_of(pieces)) == 7
    full = list(generate(language, [7] * 60, Sampling(temperature=0, max_tokens=50)))
    assert full[-1].finish == "length"
    assert 60 + len(tokens_of(full)) == 64
    ends = [
        list(generate(language, PROMPT, Sampling(temperature=100, seed=s))) for s in range(30)
    ]
    stopped = [pieces for pieces in ends if pieces[-1].finish == "stop"]
    assert stopped
    assert all(token < 256 for pieces in stopped for token in tokens_of(pieces))


def test_stop_text_ends_it_before_the_text() -> None:
    language = random_language()
    whole = "".join(p.text for p in generate(language, PROMPT, Sampling(seed=1, max_tokens=40)))
    stop = whole[10:13]
    pieces = list(generate(language, PROMPT, Sampling(seed=1, max_tokens=40, stop=(stop,))))
    assert "".join(piece.text for piece in pieces) == whole[: whole.index(stop)]
    assert pieces[-1].finish == "stop"


def test_repetition_keeps_a_greedy_reply_from_repeating() -> None:
    language = random_language()
    weak = Sampling(temperature=0, repetition=100.0, max_tokens=40)
    found = tokens_of(list(generate(language, PROMPT, weak)))
    assert len(set(found)) == len(found)
    assert not set(found) & set(PROMPT)


def test_likelihoods_are_those_of_whole_passes() -> None:
    language = random_language()
    asked = Sampling(temperature=0, max_tokens=8, logprobs=3)
    pieces = list(generate(language, PROMPT, asked))
    found = [each for piece in pieces for each in piece.likelihoods]
    tokens = tokens_of(pieces)
    assert [each.token for each in found] == tokens
    logs = language.model(torch.tensor([PROMPT + tokens])).log_softmax(-1)[0, len(PROMPT) - 1 :]
    for each, log, token in zip(found, logs, tokens, strict=False):
        assert each.logprob == pytest.approx(log[token].item())
        assert [t for t, _ in each.top] == log.topk(3).indices.tolist()


@pytest.mark.parametrize(
    ("prompt", "says"),
    [
        ([], "empty"),
        ([0] * 64, "at most 63"),
        ([1, 261], "261 is not one"),
        ([-1], "-1 is not"),
    ],
    ids=["empty", "long", "high", "negative"],
)
def test_wrong_prompts_fail_at_once(prompt: list[int], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        generate(random_language(), prompt)


def test_a_burst_below_1_is_refused() -> None:
    with pytest.raises(ArgumentError, match="burst"):
        generate(random_language(), PROMPT, burst=0)


def test_weights_that_are_not_finite_are_an_error() -> None:
    language = random_language()
    with torch.no_grad():
        language.model.head.linear.weight[3] = float("nan")
    with pytest.raises(UnstableError, match="not finite"):
        list(generate(language, PROMPT))
    with pytest.raises(UnstableError, match="not finite"):
        list(generate(language, PROMPT, burst=4))


def test_characters_are_whole_in_every_piece() -> None:
    language = random_language(encoding=byte_encoding())
    pieces = list(generate(language, PROMPT, Sampling(temperature=100, seed=5)))
    joined = language.encoding.decode(tokens_of(pieces))
    assert "".join(piece.text for piece in pieces) == joined
