"""Tuning: replies alone count, what is chosen alone changes, rows that are wrong are named."""

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from hotgrid.chat import (
    GPT,
    ConversationData,
    ConversationEncoder,
    LanguageModel,
    RunSettings,
    Tuning,
    conversation,
    load_model,
    save_model,
    tune,
)
from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.kernels import compress
from hotgrid.tokens import Encoding

ROWS: list[dict[str, Any]] = [
    {
        "messages": [
            {"role": "user", "content": f"say {n}"},
            {"role": "assistant", "content": "yes"},
        ]
    }
    if n % 3
    else {"question": f"ask {n}", "answer": "yes"}
    for n in range(60)
]


@pytest.fixture
def dialogues(tmp_path: Path) -> Path:
    file = tmp_path / "dialogues.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return file


@pytest.fixture
def base(small_gpt: Callable[..., GPT], byte_encoding: Encoding) -> LanguageModel:
    return LanguageModel(small_gpt(vocabulary=320, layers=2), byte_encoding, {"name": "base"})


def tuned(base: LanguageModel, file: Path, folder: Path, **options: Any) -> LanguageModel:
    settings = RunSettings(folder, device="cpu", show=False, **options.pop("run", {}))
    how = Tuning(**({"steps": 12, "batch_tokens": 128} | options))
    return tune(base, ConversationData([file], 0.1), settings, how)


def test_replies_alone_count(byte_encoding: Encoding) -> None:
    rows = [*ROWS[:2], {"text": "plain"}]
    for row, array in zip(rows, ConversationEncoder(byte_encoding)(rows), strict=True):
        counted = byte_encoding.decode(array[array[:, 1] == 1, 0].tolist())
        assert counted == ("plain" if "text" in row else "yes<|end|>")
    assert byte_encoding.decode(ConversationEncoder(byte_encoding)(rows)[0][:, 0].tolist()) == (
        "<|user|>ask 0<|end|><|assistant|>yes<|end|>"
    )


@pytest.mark.parametrize(
    "options",
    [
        {"method": "full", "rate": 0.3},
        {"method": "select", "select": "//MLP//Linear"},
        {"method": "lora", "rank": 2, "alpha": 4.0},
    ],
    ids=["full", "select", "lora"],
)
def test_a_model_learns_to_answer(
    base: LanguageModel, dialogues: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    before = {name: each.clone() for name, each in base.model.state_dict().items()}
    options = {"rate": 0.02, "steps": 25} | options
    made = tuned(base, dialogues, tmp_path / "run", **options)
    assert made.card["tuned"]
    assert made.card["base"] == "base"
    # The given one stays as it is.
    for name, each in base.model.state_dict().items():
        assert torch.equal(each, before[name])
    changed = {
        name
        for name, each in made.model.state_dict().items()
        if not torch.equal(each, before[name])
    }
    expected = {
        "full": set(before),
        "select": {name for name in before if ".mlp." in name},
        "lora": {name for name in before if ".mlp." in name or ".attn." in name},
    }
    assert changed == expected[options["method"]]
    # It starts near ln(320), and four bytes that are always the same are easy.
    assert made.card["figures"]["valid/loss"] < 2.5
    tokens = torch.arange(20).view(1, 20)
    for where in (tmp_path / "run", tmp_path / "run" / "model"):
        again = load_model(where).model
        assert type(again.blocks()[0].attn.q) is torch.nn.Linear
        torch.testing.assert_close(again(tokens), made.model(tokens), rtol=0, atol=1e-5)


def test_a_tuning_resumes(base: LanguageModel, dialogues: Path, tmp_path: Path) -> None:
    options = {"method": "lora", "rank": 2, "rate": 0.02}
    whole = tuned(base, dialogues, tmp_path / "whole", run={"save_every": 3}, **options)
    tuned(base, dialogues, tmp_path / "part", run={"save_every": 3}, **options)
    steps = sorted((tmp_path / "part" / "checkpoints").glob("step-*"))
    for each in steps[-1].iterdir():
        each.unlink()
    steps[-1].rmdir()
    run = {"save_every": 3, "resume": True}
    again = tuned(base, dialogues, tmp_path / "part", run=run, **options)
    for name, each in whole.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], each)


def test_options_that_are_wrong(
    base: LanguageModel, dialogues: Path, tmp_path: Path, byte_encoding: Encoding
) -> None:
    with pytest.raises(ArgumentError, match="full trains all"):
        Tuning("full", "//MLP")
    with pytest.raises(ArgumentError, match="needs `select`"):
        Tuning("select")
    with pytest.raises(ArgumentError, match="'loar'; choose"):
        Tuning("loar")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentError, match="MPL"):
        tuned(base, dialogues, tmp_path / "run", method="select", select="//MPL")
    small = compress(base.model, form="int8")
    assert isinstance(small, GPT)
    with pytest.raises(ArgumentError, match="is compressed"):
        tuned(LanguageModel(small, byte_encoding), dialogues, tmp_path / "run")
    save_model(tmp_path / "base", base)
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(ArgumentError, match=r"no document|nothing to learn"):
        tuned(base, tmp_path / "empty.jsonl", tmp_path / "run")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([1], "is a JSON object"),
        ({"prompt": "a"}, "neither `messages`"),
        ({"messages": [{"role": "robot", "content": "a"}]}, "no role 'robot'"),
        ({"messages": [{"role": "user"}]}, "'content'"),
        ({"messages": [{"role": "user", "content": "a"}]}, "no reply"),
        (
            {"messages": [{"role": "assistant", "content": None}]},
            "`content` of a row is 'None'",
        ),
        ({"messages": [{"role": "user", "content": [{"text": "a"}]}]}, "not a text"),
        (
            {
                "messages": [
                    {"role": "assistant", "content": "a"},
                    {"role": "system", "content": "b"},
                ]
            },
            "a system message must be the first",
        ),
        ({"question": "a", "answer": None}, "`answer` of a row is 'None', not a text"),
        ({"question": {"a": 1}, "answer": "b"}, "`question` of a row is"),
    ],
)
def test_rows_that_are_no_conversation(row: Any, message: str) -> None:
    with pytest.raises(DamagedError, match=message):
        conversation(row)


def test_answers_may_be_numbers_and_rows_hold_more(byte_encoding: Encoding) -> None:
    row = {"question": "2 + 2?", "answer": 4, "asked": datetime.date(2026, 1, 1)}
    found = conversation(row)
    assert [each.content for each in found if not isinstance(each, str)] == ["2 + 2?", "4"]
    halves = [ConversationEncoder(byte_encoding, hold_out=0.5, held=h)([row]) for h in (0, 1)]
    assert sorted(map(len, halves)) == [0, 1]


def test_what_is_longer_than_a_row_is_cut_and_counted(
    byte_encoding: Encoding, tmp_path: Path
) -> None:
    encode = ConversationEncoder(byte_encoding, most=8)
    text = "0123456789abcdefghij"
    parts = encode([{"text": text}])
    assert byte_encoding.decode([int(t) for part in parts for t in part[:, 0]]) == text
    assert [len(part) for part in parts] == [8, 8, 4]
    (cut,) = encode([{"question": "ask", "answer": "a long answer"}])
    assert len(cut) == 8
    assert encode([{"question": "much too long", "answer": "yes"}]) == []
    assert encode.skipped == 1
    file = tmp_path / "long.jsonl"
    rows = [{"question": "ask", "answer": "a long answer"}, {"text": text}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert ConversationData([file], 0.0).tokens(byte_encoding, 8) == (8 + 20 + 4, 2 + 20)


def test_conversations_whose_replies_are_beyond_a_row(
    base: LanguageModel, dialogues: Path, tmp_path: Path
) -> None:
    long = {"question": "word " * 100, "answer": "yes"}
    file = tmp_path / "long.jsonl"
    file.write_text(json.dumps(long) + "\n")
    with pytest.raises(ArgumentError, match=r"begins within 32 tokens.*--context"):
        tuned(base, file, tmp_path / "none", batch_tokens=32)
    # Among others they are skipped; a step of such a row alone had no finite gradient.
    file.write_text(dialogues.read_text() + (json.dumps(long) + "\n") * 60)
    made = tuned(base, file, tmp_path / "run", batch_tokens=32)
    assert all(bool(weight.isfinite().all()) for weight in made.model.parameters())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_model_of_16_bits_is_tuned_in_32(
    base: LanguageModel, dialogues: Path, tmp_path: Path, dtype: torch.dtype
) -> None:
    save_model(tmp_path / "half", base)
    made = tuned(load_model(tmp_path / "half", dtype=dtype), dialogues, tmp_path / "run")
    again = load_model(tmp_path / "run" / "model")
    for model in (made.model, again.model):
        assert {weight.dtype for weight in model.parameters()} == {torch.float32}
