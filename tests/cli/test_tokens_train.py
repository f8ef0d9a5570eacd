"""`hotgrid tokens train` and `bench`: small, but end to end."""

import json
import os
from pathlib import Path

import pytest

from hotgrid import tokens

from .command import run

WORDS = "low lower lowest new newer newest wide wider widest " * 20


def train(*arguments: str) -> int:
    size = [] if "--vocab-size" in arguments else ["--vocab-size", "280"]
    return run(["tokens", "train", *size, *arguments])


@pytest.fixture(autouse=True)
def corpus(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.txt").write_text(WORDS)
    (tmp_path / "corpus" / "b.txt").write_text("und noch mehr Wörter " * 10)
    (tmp_path / "corpus" / "c.bin").write_bytes(b"\xff\xfe")


def test_what_was_trained_can_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert train("corpus", "--out", "mine.json", "--special", "<|end|>") == 0
    out, err = capsys.readouterr()
    assert out == "Wrote mine.json with 280 tokens.\nUse it with `--vocab mine.json`.\n"
    assert err.startswith("hotgrid: left out: `corpus/c.bin` is not UTF-8")
    right = tokens.train(
        [tmp_path / "corpus" / "a.txt", tmp_path / "corpus" / "b.txt"],
        280,
        special_tokens=["<|end|>"],
    )
    use = ["--vocab", "mine.json", "--text", f"{WORDS}<|end|>", "--specials"]
    assert run(["tokens", "encode", *use]) == 0
    assert list(map(int, capsys.readouterr().out.split())) == right.encode(
        f"{WORDS}<|end|>", allowed_special="all"
    )


def test_a_tiktoken_file_says_how_to_use_it(capsys: pytest.CaptureFixture[str]):
    pattern = r"\w+|\W+"
    assert train("corpus/a.txt", "--out", "m.tiktoken", "--pattern", pattern) == 0
    told = capsys.readouterr().out.splitlines()
    count = len(tokens.load_tiktoken("m.tiktoken")._mergeable_ranks)
    assert told[0].startswith(f"Wrote m.tiktoken with {count} tokens")
    assert told[1].startswith("A .tiktoken file cannot contain special tokens: without ")
    assert f"<|endoftext|> ({count})" in told[1]
    assert told[2] == (rf"Use it with `--vocab m.tiktoken --pattern '{pattern}'`.")
    count = ["tokens", "count", "corpus/a.txt", "--vocab", "m.tiktoken", "--pattern", pattern]
    assert run(count) == 0
    right = tokens.train(WORDS, 280, pattern=pattern).count(WORDS)
    assert capsys.readouterr().out.splitlines()[1].split()[2] == f"{right:,}"


def test_what_to_copy_into_a_shell_is_the_name_itself(capsys: pytest.CaptureFixture[str]):
    name = os.fsdecode(b"it's\xff \\\n\x1b[31m\xc3\xa9.json")
    assert train("corpus", "--out", name) == 0
    told = capsys.readouterr().out.removesuffix("\n").split("\n")
    assert told == [
        "Wrote it's\ufffd \\\u240a\u241b[31mé.json with 280 tokens.",
        r"Use it with `--vocab $'it\'s\xff \\\x0a\x1b[31mé.json'`.",
    ]
    assert train("corpus/a.txt", "--out", "two words.json") == 0
    assert "`--vocab 'two words.json'`" in capsys.readouterr().out
    assert train("corpus/a.txt", "--out", name, "--force", "--json") == 0
    assert json.loads(capsys.readouterr().out)["file"] == "it's\ufffd \\\n\x1b[31mé.json"


def test_a_file_that_cannot_be_learnt_from_is_named_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    name = os.fsdecode(b"\xff\n.txt")
    (tmp_path / name).write_bytes(b"\xfe")
    assert train(name, "--out", "mine.json") == 1
    assert capsys.readouterr().err == (
        "hotgrid: `\ufffd\u240a.txt` is not UTF-8: byte 0 begins no character\n"
    )


def test_a_tiktoken_file_counts_its_own_tokens(capsys: pytest.CaptureFixture[str]):
    assert train("corpus/a.txt", "--out", "m.tiktoken", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["tokens"] == len(Path("m.tiktoken").read_bytes().splitlines())
    assert facts["special_tokens"] == {"<|endoftext|>": facts["tokens"]}


def test_options_reach_the_trainer(capsys: pytest.CaptureFixture[str]):
    limits = ["--max-token-length", "3", "--min-frequency", "5", "--json"]
    assert train("corpus/a.txt", "--out", "m.json", "--pattern", "gpt2", *limits) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["tokens"] <= 280
    assert facts["special_tokens"] == {"<|endoftext|>": facts["tokens"] - 1}
    enc = tokens.load_huggingface("m.json")
    assert max(map(len, enc.token_byte_values())) == 3
    assert enc._pat_str == tokens._patterns.GPT2


def test_bytes_that_are_no_text_can_be_replaced(capsys: pytest.CaptureFixture[str]):
    assert train("corpus/c.bin", "--out", "m.json") == 1
    assert "`corpus/c.bin` is not UTF-8" in capsys.readouterr().err
    assert train("corpus", "--out", "m.json", "--errors", "replace") == 0
    assert capsys.readouterr().err == ""


def test_fewer_tokens_than_wanted_are_reported(capsys: pytest.CaptureFixture[str]):
    Path("tiny.txt").write_text("aaaa")
    assert train("tiny.txt", "--out", "m.json") == 0
    assert "the texts have no pairs for more of the 280" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (["corpus/a.txt", "--out", "m.bin"], "`--out m.bin` must end in .json", 1),
        (["corpus/a.txt", "--out", "there.json"], "`there.json` already exists;", 1),
        (["nope.txt", "--out", "m.json"], "nope.txt", 1),
        (["corpus/a.txt", "--out", "m.json", "--pattern", "gtp2"], "did you mean `gpt2`?", 1),
        (["corpus/a.txt", "--out", "m.json", "--pattern", "(a"], "is not a pattern", 1),
        (["corpus/a.txt", "--out", "m.json", "--vocab-size", "9"], "must be from 257", 1),
        (["corpus/a.txt", "--out", "m.json", "--min-frequency", "1.5"], "`1.5`", 2),
        (["corpus/a.txt"], "--out", 2),
    ],
)
def test_invalid_options_are_a_message(
    arguments: list[str], said: str, code: int, capsys: pytest.CaptureFixture[str]
):
    Path("there.json").write_text("precious")
    assert train(*arguments) == code
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err
    assert Path("there.json").read_text() == "precious"
    assert not Path("m.json").exists()


@pytest.fixture
def vocabulary() -> Path:
    assert train("corpus/a.txt", "--out", "mine.tiktoken") == 0
    return Path("mine.tiktoken").absolute()


def bench(*arguments: str) -> int:
    return run(
        ["tokens", "bench", "--vocab", "mine.tiktoken", "--pattern", "cl100k", *arguments]
    )


@pytest.mark.usefixtures("vocabulary")
def test_bench_measures_lists_and_arrays(capsys: pytest.CaptureFixture[str]):
    capsys.readouterr()
    assert bench("corpus/a.txt", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["encoding"], found["texts"], found["bytes"]) == ("mine", 1, len(WORDS))
    assert {row["output"] for row in found["rows"]} == {"list", "flat"}
    assert all(row["cold_mb_s"] > 0 < row["warm_mb_s"] for row in found["rows"])
    assert bench("corpus/a.txt") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["output", "threads", "cold", "MB/s", "warm", "MB/s"]
    assert lines[-1] == f"mine, 1 texts, {len(WORDS):,} bytes."


def test_bench_takes_no_more_than_asked_for(
    vocabulary: Path, capsys: pytest.CaptureFixture[str]
):
    Path("long.txt").write_text("ä" * 800_000)
    capsys.readouterr()
    bench("long.txt", "corpus/a.txt", "--megabytes", "1", "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["texts"], found["bytes"]) == (1, 1_000_000)
    assert bench("long.txt", "--megabytes", "0") == 1
    assert bench("--text", "") == 1
