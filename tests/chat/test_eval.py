"""Measures of a model against what can be computed by hand."""

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from hotgrid.chat import (
    GPT,
    ChatMessage,
    GPTConfig,
    LanguageModel,
    TextBatches,
    TextData,
    TextEncoder,
    continuation_likelihoods,
    final_answer,
    render,
    samples,
    score_answers,
    score_choices,
    score_text,
)
from hotgrid.chat._prompts import completion_tokens
from hotgrid.errors import ArgumentError, DamagedError, UnstableError
from hotgrid.tokens import Encoding

from ..cli.command import run as hotgrid  # noqa: TID252  tests are not a package
from .tiny import byte_encoding as bytes_and, random_language


@pytest.fixture
def language(small_gpt: Callable[..., GPT], byte_encoding: Encoding) -> LanguageModel:
    return LanguageModel(small_gpt(vocabulary=320, layers=2), byte_encoding)


def lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def nats(language: LanguageModel, tokens: list[int], first: int) -> float:
    """The loss of tokens from `first` on, one at a time."""
    total = 0.0
    for at in range(first, len(tokens)):
        logits = language.model(torch.tensor([tokens[:at]]))[0, -1].detach().double()
        total -= float(logits.log_softmax(-1)[tokens[at]])
    return total


def test_bits_per_byte_of_a_model_that_knows_nothing(
    byte_encoding: Encoding, text_file: Path
) -> None:
    model = GPT(GPTConfig(vocabulary=320, layers=1, size=32, heads=2, context=16))
    torch.nn.init.zeros_(model.head.linear.weight)
    score = score_text(LanguageModel(model, byte_encoding), TextData([text_file], hold_out=0))
    texts = [json.loads(line)["text"] for line in text_file.read_text().splitlines()]
    assert score.bytes == score.tokens == sum(map(len, texts))
    assert score.bits_per_byte == pytest.approx(math.log2(320))
    assert score.perplexity == pytest.approx(320)


@pytest.mark.parametrize("batch", [1, 3])
def test_text_is_scored_token_by_token(
    language: LanguageModel, tmp_path: Path, batch: int
) -> None:
    texts = ["a wave", "warm", "it is slow"]
    file = lines(tmp_path / "a.jsonl", [{"text": text} for text in texts])
    # Rows are wide enough for one document each.
    score = score_text(language, TextData([file], hold_out=0), context=10, batch=batch)
    bos = language.encoding.encode_single_token("<|bos|>")
    first = [bos, *texts[2].encode()]
    second = [bos, *texts[0].encode(), bos, *texts[1].encode()]
    assert score.tokens == 20
    lone = nats(language, first, 1)
    both = nats(language, second[:7], 1)
    assert score.bits_per_byte > 0
    # The third document begins in the second row and is cut: its first part sees the row.
    context = nats(language, second[:11], 8)
    rest = nats(language, [bos, *second[11:]], 1)
    expected = (lone + both + context + rest) / math.log(2) / 20
    assert score.bits_per_byte == pytest.approx(expected, rel=1e-4)


def test_likelihoods_of_continuations(language: LanguageModel) -> None:
    pairs = [([1, 2, 3], [4, 5]), ([7], [8]), ([1, 2, 3, 4, 5, 6], [9, 9, 9])]
    found = continuation_likelihoods(language, pairs, batch=2)
    for (start, rest), value in zip(pairs, found, strict=True):
        assert value == pytest.approx(-nats(language, start + rest, len(start)), rel=1e-4)


@pytest.mark.parametrize("known", [False, True])
def test_choices_by_likelihood(language: LanguageModel, tmp_path: Path, known: bool) -> None:
    language = LanguageModel(language.model, language.encoding, {"tuned": known})
    questions = [("what?", ["a", "bcd", "ef"]), ("who?", ["me", "you"]), ("why?", ["x", "yz"])]
    answers: list[Any] = [1, "me", "b"]
    rights = [1, 0, 1]
    rows = [
        {"question": question, "choices": choices, "answer": answer}
        for (question, choices), answer in zip(questions, answers, strict=True)
    ]
    score = score_choices(language, [lines(tmp_path / "q.jsonl", rows)], batch=2)
    plain = by_byte = 0
    for (question, choices), right in zip(questions, rights, strict=True):
        if known:
            start = render(language.encoding, [ChatMessage("user", question)], reply=True)[0]
        else:
            bos = language.encoding.encode_single_token("<|bos|>")
            start = [bos, *f"Question: {question}\nAnswer:".encode()]
        space = "" if known else " "
        own = [
            -nats(language, [*start, *(space + each).encode()], len(start)) for each in choices
        ]
        each = [value / len(text) for value, text in zip(own, choices, strict=True)]
        plain += own.index(max(own)) == right
        by_byte += each.index(max(each)) == right
    assert score.accuracy == pytest.approx(plain / 3)
    assert score.by_byte == pytest.approx(by_byte / 3)
    assert score.chance == pytest.approx((1 / 3 + 1 / 2 + 1 / 2) / 3)
    assert score.questions == 3


def test_exact_answers(language: LanguageModel, tmp_path: Path) -> None:
    rows = [{"question": f"{n} and {n}?", "answer": "so #### 4"} for n in range(5)]
    first = score_answers(language, [lines(tmp_path / "a.jsonl", rows)], batch=2, max_tokens=6)
    assert first.questions == 5
    assert first.too_long == 0
    assert first.examples[0][0] == "4"
    # What the model says is right if it is what was expected.
    for row, (_, reply) in zip(rows, first.examples, strict=False):
        row["answer"] = reply
    again = score_answers(
        language, [lines(tmp_path / "a.jsonl", rows[:3])], batch=3, max_tokens=6
    )
    assert again.accuracy == 1
    assert again.examples == tuple((final_answer(reply), reply) for _, reply in first.examples)


def test_questions_that_are_too_long_are_counted(
    language: LanguageModel, tmp_path: Path
) -> None:
    rows = [{"question": "word " * 500, "answer": "1"}, {"question": "1?", "answer": "2"}]
    score = score_answers(language, [lines(tmp_path / "a.jsonl", rows)], max_tokens=4)
    assert (score.questions, score.too_long) == (2, 1)
    assert score.examples[0] == ("1", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("so 5 + 7 = 12 #### 12", "12"),
        ("#### 1,234.50", "1234.5"),
        ("I think it is 7. No, -8", "-8"),
        ("Maybe.", "maybe"),
        ("#### 10 apples or 12", "10"),
        ("#### .5", "0.5"),
        ("#### \N{MINUS SIGN}3", "-3"),
        ("it is 10-4", "4"),
        ("#### 12345678901", "12345678901"),
        ("#### -0.0", "0"),
        ("#### 100.", "100"),
        ("", ""),
    ],
)
def test_what_an_answer_ends_with(text: str, expected: str) -> None:
    assert final_answer(text) == expected


def test_rows_that_are_no_questions(language: LanguageModel, tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    with pytest.raises(DamagedError, match="no `question`, `choices` and `answer`"):
        score_choices(language, [lines(file, [{"question": "a"}])])
    bad = {"question": "a", "choices": ["b"], "answer": "c?"}
    with pytest.raises(DamagedError, match="`answer` 'c\\?' is not one of 1 choices"):
        score_choices(language, [lines(file, [bad])])
    with pytest.raises(DamagedError, match="no `question` and `answer`"):
        score_answers(language, [lines(file, [{"question": "a"}])])
    for choices in ({"text": ["b"]}, "bc", [], ["b", ""], ["b", None]):
        bad = {"question": "a", "choices": choices, "answer": "A"}
        with pytest.raises(DamagedError, match="`choices` is not a list of texts"):
            score_choices(language, [lines(file, [bad])])
    good = {"question": "a", "choices": ["b", "c"], "answer": "A"}
    with pytest.raises(ArgumentError, match="`limit` must be at least 1, got 0"):
        score_choices(language, [lines(file, [good])], limit=0)
    with pytest.raises(ArgumentError, match="`batch` must be at least 1, got 0"):
        score_choices(language, [lines(file, [good])], batch=0)
    with pytest.raises(DamagedError, match="`question` of a row is 'None', not a text"):
        score_answers(language, [lines(file, [{"question": None, "answer": 1}])])
    with pytest.raises(ArgumentError, match=r"no question|no document"):
        score_answers(language, [lines(file, [])])


def test_samples_begin_with_the_prompt(language: LanguageModel) -> None:
    found = samples(language, 3, prompt="the ", max_tokens=5)
    assert len(found) == 3
    assert all(each.startswith("the ") for each in found)
    assert samples(language, 1, prompt="the ", max_tokens=5) == found[:1]


def foreign(language: LanguageModel) -> LanguageModel:
    """The same model with a vocabulary that has a beginning of its own."""
    names = language.encoding.special_tokens_set
    numbers = {name: language.encoding.encode_single_token(name) for name in names}
    numbers["<|begin_of_text|>"] = numbers.pop("<|reserved_0|>")
    encoding = language.encoding.with_special_tokens(numbers, name="foreign")
    return LanguageModel(language.model, encoding, language.card)


def test_all_begin_with_the_token_that_the_vocabulary_has_for_it(
    language: LanguageModel, tmp_path: Path
) -> None:
    other = foreign(language)
    first = other.encoding.encode_single_token("<|begin_of_text|>")
    assert completion_tokens(other, "Hi")[0] == first
    assert render(other.encoding, [ChatMessage("user", "Hi")], reply=True)[0][0] == first
    text = "some text"
    score = score_text(
        other, TextData([lines(tmp_path / "a.jsonl", [{"text": text}])], hold_out=0.0)
    )
    tokens = [first, *other.encoding.encode(text)]
    expected = nats(other, tokens, 1) / len(text) / math.log(2)
    assert score.bits_per_byte == pytest.approx(expected, rel=1e-5)
    shards = TextData([lines(tmp_path / "b.jsonl", [{"text": text}])]).shards(
        [tmp_path / "b.jsonl"]
    )
    batches = TextBatches(
        shards, TextEncoder(other.encoding), other.encoding, rows=1, context=16, isolate=True
    )
    batch = next(batches)
    batches.close()
    assert batch.tokens[0, 0] == first
    assert batch.documents is not None
    assert batch.documents.max() == (batch.tokens == first).sum()


def test_a_base_model_is_not_asked_questions_of_its_own(tmp_path: Path) -> None:
    words = (b" 4", b"\nQuestion:", b" 5")
    encoding = bytes_and(*words)
    language = random_language(
        tuned=False, encoding=encoding, vocabulary=encoding.n_vocab, context=128
    )
    # Each of the words follows the one before it, and the first follows the prompt.
    chain = [encoding.encode_single_token(b":"), *range(256, 259)]
    with torch.no_grad():
        for block in language.model.blocks():
            block.attn.out.weight.zero_()
            block.mlp.down.weight.zero_()
        language.model.head.linear.weight.zero_()
        language.model.embed.weight.fill_(1.0)
        for place, (token, after) in enumerate(itertools.pairwise(chain)):
            language.model.embed.weight[token] = 0.0
            language.model.embed.weight[token, place] = 1.0
            language.model.head.linear.weight[after, place] = 100.0
    rows = lines(tmp_path / "a.jsonl", [{"question": "2 + 2?", "answer": "#### 4"}])
    score = score_answers(language, [rows], max_tokens=3)
    assert score.examples == (("4", " 4"),)
    assert score.accuracy == 1


def test_half_a_character_in_a_choice(language: LanguageModel, tmp_path: Path) -> None:
    row = {"question": "Which?", "choices": ["\ud800", "b"], "answer": 1}
    assert score_choices(language, [lines(tmp_path / "a.jsonl", [row])]).questions == 1


def test_a_device_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert hotgrid(["chat", "eval", "--device", "abacus"]) != 0
    assert "abacus" in capsys.readouterr().err


def test_a_model_that_is_not_finite_has_no_score(
    language: LanguageModel, tmp_path: Path
) -> None:
    with torch.no_grad():
        language.model.blocks()[0].attn.out.weight.fill_(math.nan)
    rows = [{"question": "q", "choices": ["a", "b"], "answer": 0, "text": "some text"}]
    file = lines(tmp_path / "a.jsonl", rows)
    with pytest.raises(UnstableError, match="not finite"):
        score_choices(language, [file])
    with pytest.raises(UnstableError, match="not finite"):
        score_text(language, TextData([file], hold_out=0.0))
