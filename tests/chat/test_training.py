"""Pretraining: it learns, it resumes bit for bit on one and two ranks, and errors help."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from hotgrid.chat import (
    GPT,
    LanguageModel,
    Recipe,
    RunSettings,
    TextData,
    load_model,
    pretrain,
)
from hotgrid.errors import ArgumentError, DamagedError, StoreError, UnstableError
from hotgrid.store import Checkpoints
from hotgrid.tokens import Encoding, save_huggingface
from hotgrid.train import read_events

NUMBERS: dict[str, Any] = {"size": 64, "heads": 2, "context": 32, "batch_tokens": 256}


def train(file: Path, encoding: Encoding, folder: Path, **options: Any) -> LanguageModel:
    numbers = NUMBERS | options.pop("numbers", {})
    recipe = Recipe.of(2, vocabulary=encoding.n_vocab, **({"steps": 12} | numbers))
    shape = options.pop("shape", {})
    settings = RunSettings(folder, **({"device": "cpu", "show": False} | options))
    return pretrain(TextData([file], hold_out=0.1), encoding, recipe, settings, shape=shape)


def test_it_learns(text_file: Path, byte_encoding: Encoding, tmp_path: Path) -> None:
    made = train(
        text_file,
        byte_encoding,
        tmp_path / "run",
        numbers={"steps": 60, "matrix_rate": 0.02, "embedding_rate": 0.3, "head_rate": 0.02},
        average=0.8,
        evaluate_every=60,
        save_every=30,
    )
    figures = made.card["figures"]
    # Uniform bytes have 8 bits, and ten words in a row about 3.3 for each of 5 bytes.
    assert 0.3 < figures["valid/bits per byte"] < 4.5
    assert figures["step"] == 60
    tokens = torch.tensor([byte_encoding.encode_ordinary("the lattice is warm")])
    for where in (tmp_path / "run", tmp_path / "run" / "model"):
        found = load_model(where)
        assert found.card["tuned"] is False
        assert found.encoding.encode("wave") == byte_encoding.encode("wave")
        torch.testing.assert_close(found.model(tokens), made.model(tokens), rtol=0, atol=1e-6)
    assert load_model(tmp_path / "run").card["step"] == 60


def test_the_shape_can_be_chosen(
    text_file: Path, byte_encoding: Encoding, tmp_path: Path
) -> None:
    shape = {"tied": True, "value_embeddings": True, "mixing": True, "window": "SL"}
    made = train(
        text_file,
        byte_encoding,
        tmp_path / "run",
        numbers={"steps": 2},
        shape=shape,
        isolate=True,
        rows=4,
    )
    config = load_model(tmp_path / "run").model.config
    assert config == made.model.config
    assert config.mixing
    assert config.tied


def command(file: Path, folder: Path, *more: str) -> list[str]:
    numbers = [f"--{name.replace('_', '-')}={value}" for name, value in NUMBERS.items()]
    every = ["--steps=14", "--save-every=4", "--log-every=1", "--evaluate-every=7"]
    tokenizer = f"--tokenizer={file.parent / 'tokenizer.json'}"
    start = [sys.executable, "-m", "hotgrid", "chat", "train", str(file), "--depth=2"]
    device = ["--device=cpu", "--samples=1", "--hold-out=0.1", f"--out={folder}"]
    return [*start, tokenizer, *numbers, *every, *device, *more]


def start(arguments: list[str], ranks: int) -> list[subprocess.Popen[bytes]]:
    """Start a command on a number of ranks."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    plain = {**os.environ, "OMP_NUM_THREADS": "1"}
    found = []
    for rank in range(ranks):
        joined = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank)}
        joined |= {"WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank)}
        joined |= {"LOCAL_WORLD_SIZE": str(ranks)}
        environment = plain | (joined if ranks > 1 else {})
        found.append(
            subprocess.Popen(
                arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        )
    return found


def finish(processes: list[subprocess.Popen[bytes]]) -> str:
    heard = [each.communicate(timeout=240) for each in processes]
    assert [each.returncode for each in processes] == [0] * len(processes), heard
    return heard[0][0].decode()


def losses(folder: Path) -> list[tuple[int, float, float]]:
    return [
        (each["step"], each["values"]["train/loss"], each["values"]["train/bits per byte"])
        for each in read_events(folder)
        if each["event"] == "train"
    ]


@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 2])
def test_killed_and_resumed_to_the_bit(
    text_file: Path, byte_encoding: Encoding, tmp_path: Path, ranks: int
) -> None:
    save_huggingface(byte_encoding, tmp_path / "tokenizer.json")
    told = finish(start(command(text_file, tmp_path / "whole"), ranks))
    assert "2^19 x (tokens" not in told
    assert "bits per byte, step 14" in told
    killed = start(command(text_file, tmp_path / "killed"), ranks)
    events = tmp_path / "killed" / "events.jsonl"
    until = time.monotonic() + 200
    while not (events.exists() and b'"step": 6' in events.read_bytes()):
        assert time.monotonic() < until
        assert all(each.poll() is None for each in killed)
        time.sleep(0.01)
    for each in killed:
        each.send_signal(signal.SIGKILL)
        each.communicate()
    finish(start(command(text_file, tmp_path / "killed", "--resume"), ranks))
    assert len(losses(tmp_path / "whole")) == 14
    assert losses(tmp_path / "killed") == losses(tmp_path / "whole")
    ends = [
        Checkpoints(tmp_path / name / "checkpoints").load().tensors
        for name in ("whole", "killed")
    ]
    assert ends[0].keys() == ends[1].keys()
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])


def test_a_run_is_resumed_with_the_same_settings(
    text_file: Path, byte_encoding: Encoding, tmp_path: Path
) -> None:
    train(text_file, byte_encoding, tmp_path / "run", numbers={"steps": 2})
    with pytest.raises(ArgumentError, match="recipe"):
        train(text_file, byte_encoding, tmp_path / "run", numbers={"steps": 3}, resume=True)
    with text_file.open("a") as file:
        file.write('{"text": "more"}\n')
    with pytest.raises(ArgumentError, match="data"):
        train(text_file, byte_encoding, tmp_path / "run", numbers={"steps": 2}, resume=True)
    with pytest.raises(StoreError, match="resume"):
        train(text_file, byte_encoding, tmp_path / "none", numbers={"steps": 2}, resume=True)


def test_an_earlier_run_can_still_be_loaded(
    text_file: Path, byte_encoding: Encoding, tmp_path: Path
) -> None:
    first = train(text_file, byte_encoding, tmp_path / "run", numbers={"steps": 2})
    train(text_file, byte_encoding, tmp_path / "run", numbers={"steps": 1, "size": 128})
    earlier = load_model(tmp_path / "run" / "earlier-1").model
    assert earlier.config.size == 64
    for name, each in first.model.state_dict().items():
        assert torch.equal(earlier.state_dict()[name], each)
    assert load_model(tmp_path / "run").model.config.size == 128


def test_a_damaged_checkpoint_is_passed_over(
    text_file: Path, byte_encoding: Encoding, tmp_path: Path
) -> None:
    train(text_file, byte_encoding, tmp_path / "run", numbers={"steps": 4}, save_every=2)
    newest = max((tmp_path / "run" / "checkpoints").glob("step-*"))
    shard = next(newest.glob("*.safetensors"))
    data = bytearray(shard.read_bytes())
    data[-5] ^= 1
    shard.write_bytes(data)
    assert load_model(tmp_path / "run").card["step"] == 2
    for folder in (tmp_path / "run" / "checkpoints").glob("step-*"):
        for each in folder.glob("*.safetensors"):
            each.write_bytes(each.read_bytes()[:100])
    with pytest.raises(DamagedError, match="every checkpoint in"):
        load_model(tmp_path / "run")


def test_a_loss_that_is_not_finite(
    text_file: Path,
    byte_encoding: Encoding,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forward, calls = GPT.forward, []

    def spoiled(self: GPT, *given: Any, **named: Any) -> torch.Tensor:
        calls.append(1)
        return forward(self, *given, **named) * (float("nan") if len(calls) == 7 else 1.0)

    monkeypatch.setattr(GPT, "forward", spoiled)
    with pytest.raises(UnstableError, match="step 7"):
        train(text_file, byte_encoding, tmp_path / "run", save_every=2, evaluate_every=50)
    monkeypatch.undo()
    assert load_model(tmp_path / "run").card["step"] == 6


def test_memory_that_does_not_suffice(
    text_file: Path,
    byte_encoding: Encoding,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(self: GPT, *given: Any, **named: Any) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr(GPT, "forward", full)
    with pytest.raises(ArgumentError, match=r"Tried to allocate 2.00 GiB.*with `--rows`"):
        train(text_file, byte_encoding, tmp_path / "run")


@pytest.mark.parametrize(
    ("numbers", "rows", "message"),
    [
        ({"batch_tokens": 100}, None, "100 is not a multiple of `context` 32"),
        ({"batch_tokens": 256}, 3, "8 rows on each rank cannot be computed 3 at a time"),
        ({"vocabulary": 64}, None, "'bytes' has 320 tokens, the model 64"),
    ],
)
def test_numbers_that_do_not_fit(
    text_file: Path,
    byte_encoding: Encoding,
    tmp_path: Path,
    numbers: dict[str, int],
    rows: int | None,
    message: str,
) -> None:
    recipe = Recipe.of(2, **({**NUMBERS, "vocabulary": 320, "steps": 2} | numbers))
    settings = RunSettings(tmp_path / "run", rows=rows, device="cpu", show=False)
    with pytest.raises(ArgumentError, match=message):
        pretrain(TextData([text_file]), byte_encoding, recipe, settings)
