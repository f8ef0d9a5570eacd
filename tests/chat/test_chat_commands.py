"""The commands: one path from text to a model that is measured and made smaller."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from hotgrid.chat import GPT
from hotgrid.cli import main

NUMBERS = ["--size=64", "--heads=2", "--context=32", "--batch-tokens=256", "--device=cpu"]


def run(arguments: list[str]) -> object:
    """Run a command line in this process, and return its exit code."""
    with patch.object(sys, "argv", ["hotgrid", *arguments]), pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command prints; it must succeed."""
    code = run(list(arguments))
    heard = capsys.readouterr()
    assert code == 0, heard.err
    return heard.out


def test_from_text_to_a_small_model(
    here: Path, text_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = str(text_file)
    made = told(capsys, "chat", "tokenizer", text, "--size=320", "--out=tokenizer.json")
    assert "320 tokens in tokenizer.json" in made
    found = json.loads(
        told(
            capsys, "chat", "loader-bench", text, "--tokenizer=tokenizer.json", "--json",
            "--seconds=0.2", "--context=64", "--rows=4",
        )
    )  # fmt: skip
    assert found["tokens_per_second"] > 0
    assert found["lost_by_packing"] == 0
    trained = told(
        capsys, "chat", "train", text, "--depth=2", "--tokenizer=tokenizer.json", "--steps=4",
        "--out=base", "--hold-out=0.1", "--samples=1", "--llama", *NUMBERS,
    )  # fmt: skip
    assert "heads" in trained
    assert "given" in trained
    assert "bits per byte, step 4" in trained
    assert "\n— " in trained
    rows = [{"question": f"what is {n}?", "answer": f"#### {n}"} for n in range(12)]
    Path("qa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tuned = told(
        capsys, "chat", "tune", "base", "qa.jsonl", "--steps=2", "--method=lora", "--rank=2",
        "--out=tuned", "--hold-out=0.3", "--device=cpu",
    )  # fmt: skip
    assert "tokens, " in tuned
    assert "held-out replies" in tuned
    choice = {"question": "which?", "choices": ["this", "that"], "answer": 0}
    Path("choices.jsonl").write_text(json.dumps(choice))
    scores = json.loads(
        told(
            capsys, "chat", "eval", "tuned", "--text", text, "--choices", "choices.jsonl",
            "--answers", "qa.jsonl", "--limit=2", "--max-tokens=4", "--json",
        )
    )  # fmt: skip
    assert scores["model"] == "tuned"
    assert 0 < scores["text"]["bits_per_byte"] < 9
    assert scores["choices"]["questions"] == 1
    assert scores["answers"]["questions"] == 2
    shown = told(capsys, "chat", "eval", "tuned/model", "--text", text)
    assert "perplexity" in shown
    assert "parameters in llama" in told(capsys, "chat", "export", "tuned", "--out=llama")
    exported = json.loads(told(capsys, "chat", "eval", "llama", "--text", text, "--json"))
    assert exported["text"] == scores["text"]
    small = json.loads(
        told(
            capsys, "chat", "compress", "tuned", "--target=int8", "--out=small", "--text", text,
            "--most-tokens=512", "--json",
        )
    )  # fmt: skip
    assert small["after"]["bytes"] < small["before"]["bytes"]
    assert small["after"]["bits_per_byte"] == pytest.approx(
        small["before"]["bits_per_byte"], abs=0.05
    )
    assert "samples" in json.loads(told(capsys, "chat", "eval", "small", "--json"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "name files or folders of text"),
        (["train", "empty.txt", "--samples=-1"], "`samples` must be at least 0, got -1"),
        (["eval", "--samples=-1"], "`samples` must be at least 0, got -1"),
        (["eval", "--text", "empty.txt", "--most-tokens=-5"], "`most_tokens` must be at least"),
        (["train", "nowhere/"], "`nowhere/`: no files found"),
        (["train", "empty.txt"], "there is no text in `empty.txt`"),
        (["train", "empty.txt", "--tokenizer=t.json"], "neither a tokenizer.json nor"),
        (["train", "empty.txt", "--depth=0"], "`depth` must be at least 1, got 0"),
        (["tokenizer", "empty.txt"], "there is no text in `empty.txt`"),
        (["tune", "nowhere", "empty.txt"], "`nowhere` is not a folder with"),
        (["tune", "nowhere"], "name files of conversations"),
        (["eval", "nowhere"], "`nowhere` is not a folder with"),
        (["export", "nowhere"], "`nowhere` is not a folder with"),
        (["compress", "nowhere"], "`nowhere` is not a folder with"),
        (["loader-bench", "empty.txt"], "there is no text in `empty.txt`"),
        (["demo", "--minutes=0"], "`minutes` must be above 0, got 0"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else None,
)
def test_input_that_is_wrong(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    Path("empty.txt").write_text("\n")
    assert run(["chat", *arguments]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", ["tokenizer", "loader-bench"])
@pytest.mark.parametrize("option", ["--hold-out=0.5", "--valid=held.txt"])
def test_commands_that_hold_nothing_out_have_no_option_for_it(
    here: Path, capsys: pytest.CaptureFixture[str], command: str, option: str
) -> None:
    assert run(["chat", command, "text.txt", option]) == 2
    assert f"Unknown option: {option}" in " ".join(capsys.readouterr().err.split())


def test_a_run_that_was_stopped_does_not_name_a_model(
    here: Path,
    text_file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forward, calls = GPT.forward, []

    def stopped(self: GPT, *given: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return forward(self, *given, **named)

    told(capsys, "chat", "tokenizer", str(text_file), "--size=320")
    train = ["chat", "train", str(text_file), "--depth=1", "--tokenizer=tokenizer.json"]
    train += ["--steps=4", "--out=base", "--hold-out=0", "--samples=0", *NUMBERS]
    whole = told(capsys, *train)
    assert "model: base/model" in whole
    assert "held-out" not in whole
    monkeypatch.setattr(GPT, "forward", stopped)
    told_of_stop = told(capsys, *train, "--seed=1")
    assert "stopped after step 3; the same command with --resume continues" in told_of_stop
    assert "model:" not in told_of_stop
    assert "model: base/model" in told(capsys, *train, "--seed=1", "--resume")


@pytest.mark.slow
@pytest.mark.long
def test_the_demo_trains_and_shows_samples(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = told(capsys, "chat", "demo", "--minutes=0.01", "--depth=1", "--size=64")
    assert "steps; held-out text: " in shown
    assert "┤" in shown
    assert shown.count("\n— ") == 3
    assert (here / "out" / "chat-demo" / "model" / "model.json").is_file()
