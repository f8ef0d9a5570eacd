"""A run that was stopped continues bit for bit."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from hotgrid.errors import ArgumentError, StoreError
from hotgrid.store import Checkpoints
from hotgrid.train import (
    AdamW,
    CosineDecay,
    Evaluation,
    Muon,
    Saving,
    TensorBatches,
    groups,
    read_events,
)

from .training_cases import data, loss, net, sgd, trainer, weights

STUDY = Path(__file__).parents[2] / "benchmarks" / "study_training_kills.py"


class BrokenOffError(Exception):
    pass


def noisy(module, batch):
    """A loss that uses every generator, and can be interrupted."""
    noise = torch.rand(()) + random.random() + np.random.standard_normal()  # noqa: NPY002
    return loss(module, batch) * (1 + 0.01 * noise.to(torch.float64))


def adamw(module):
    return torch.optim.AdamW(module.parameters(), lr=0.01, amsgrad=True)


def grouped(module):
    rate = CosineDecay(steps=30) * 0.02
    return groups(module, {"//Param[@rank=2]": Muon(rate=rate)}, rest=AdamW(rate=0.01))


def values(folder) -> list:
    return [
        [e["event"], e["step"], e["values"]]
        for e in read_events(folder)
        if e["event"] in ("train", "evaluate")
    ]


@pytest.mark.parametrize("optimizer", [sgd, adamw, grouped])
@pytest.mark.parametrize("stop", [1, 13, 20])
def test_a_run_that_broke_continues_to_the_bit(tmp_path, optimizer, stop):
    options = {
        "optimizer": optimizer,
        "steps": 30,
        "accumulate": 2,
        "average": 0.9,
        "log_every": 4,
        "saving": Saving(every=6, asynchronous=stop != 20),
        "evaluation": Evaluation(TensorBatches(data(20), 8, endless=False), every=5),
    }
    whole = trainer(net(dropout=0.2), step=noisy, folder=tmp_path / "whole", **options)
    whole.run()

    def breaking(module, batch):
        if broken.step == stop:
            raise BrokenOffError
        return noisy(module, batch)

    broken = trainer(net(dropout=0.2), step=breaking, folder=tmp_path / "cut", **options)
    with pytest.raises(BrokenOffError):
        broken.run()
    random.seed(99)
    np.random.seed(99)  # noqa: NPY002
    torch.manual_seed(99)
    again = trainer(net(dropout=0.2), step=noisy, folder=tmp_path / "cut", **options)
    assert again.run(resume=True).step == 30
    assert torch.equal(weights(again.module), weights(whole.module))
    assert values(tmp_path / "cut") == values(tmp_path / "whole")
    both = [Checkpoints(tmp_path / name / "checkpoints").load() for name in ("whole", "cut")]
    assert both[0].tensors.keys() == both[1].tensors.keys()
    for name, x in both[0].tensors.items():
        assert torch.equal(x, both[1].tensors[name]), name


class Stream:
    """Batches that only come in sequence."""

    def __init__(self):
        self.chance, self.drawn = random.Random(3), 0

    def __next__(self):
        self.drawn += 1
        rows = torch.tensor(self.chance.sample(range(48), 4))
        return tuple(x[rows] for x in data())

    def state(self):
        return [self.drawn, self.chance.getstate()]

    def load(self, state):
        self.drawn = state[0]
        version, numbers, spare = state[1]
        self.chance.setstate((version, tuple(numbers), spare))


def test_a_stream_continues_where_it_was(tmp_path):
    whole = trainer(source=Stream(), steps=12)
    whole.run()
    trainer(source=Stream(), steps=7, folder=tmp_path).run()
    again = trainer(source=Stream(), steps=12, folder=tmp_path)
    again.run(resume=True)
    assert torch.equal(weights(again.module), weights(whole.module))


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_ends_well(number, tmp_path):
    def step(module, batch):
        if run.step == 17:
            os.kill(os.getpid(), number)
        return loss(module, batch)

    run = trainer(step=step, steps=30, folder=tmp_path, saving=Saving(every=10), log_every=7)
    outcome = run.run()
    assert (outcome.step, outcome.why) == (18, "stopped")
    assert Checkpoints(tmp_path / "checkpoints").steps()[-1] == 18
    again = trainer(steps=30, folder=tmp_path, saving=Saving(every=10), log_every=7)
    assert again.run(resume=True).why == "finished"
    whole = trainer(steps=30, folder=tmp_path / "whole", log_every=7)
    whole.run()
    assert torch.equal(weights(again.module), weights(whole.module))
    assert values(tmp_path) == values(tmp_path / "whole")


@pytest.mark.usefixtures("interruptible")
def test_a_second_interrupt_leaves_at_once(tmp_path, capfd):
    def step(module, batch):
        if run.step == 5:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return loss(module, batch)

    run = trainer(step=step, steps=30, folder=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run.run()
    assert "Ctrl-C again exits immediately" in capfd.readouterr().err
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_that_is_ignored_stays_ignored(tmp_path):
    def step(module, batch):
        signal.raise_signal(signal.SIGINT)
        return loss(module, batch)

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert trainer(step=step, steps=3, folder=tmp_path).run().why == "finished"
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_another_thread_sigterm_is_left_alone(tmp_path):
    ended = []
    run = trainer(steps=3, folder=tmp_path)
    thread = threading.Thread(target=lambda: ended.append(run.run().why))
    thread.start()
    thread.join()
    assert ended == ["finished"]


def test_rules_keep_checkpoints_together(tmp_path):
    x, y = data(16)
    # It improves, and then gets worse: the target is another one.
    bad = Evaluation(TensorBatches((x, 0.1 * y), 16, endless=False), every=3)
    run = trainer(
        steps=30,
        folder=tmp_path,
        evaluation=bad,
        saving=Saving(every=4, last=2, best="valid/loss", keep_every=16),
    )
    run.run()
    evaluated = {
        e["step"]: e["values"] for e in read_events(tmp_path) if e["event"] == "evaluate"
    }
    best = min(evaluated, key=lambda step: evaluated[step]["valid/loss"])
    assert best not in (28, 30)
    kept = Checkpoints(tmp_path / "checkpoints").steps()
    assert kept == sorted({0, 16, 28, 30, best})


def test_events_are_cut_to_the_checkpoint(tmp_path):
    trainer(steps=8, folder=tmp_path, saving=Saving(every=4)).run()
    log = tmp_path / "events.jsonl"
    with log.open("a") as file:
        file.write('{"event": "train", "step": 9, "values": {"train/loss": 1}}\n{"event": "tr')
    trainer(steps=12, folder=tmp_path, saving=Saving(every=4)).run(resume=True)
    steps = [e["step"] for e in read_events(tmp_path) if e["event"] == "train"]
    assert steps == list(range(1, 13))
    assert all(isinstance(json.loads(line), dict) for line in log.read_text().splitlines())


def test_a_damaged_checkpoint_is_passed_over(tmp_path):
    options = {"steps": 12, "folder": tmp_path, "saving": Saving(every=4)}
    whole = trainer(**{**options, "folder": tmp_path / "whole"})
    whole.run()
    trainer(**{**options, "steps": 9}).run()
    newest = sorted((tmp_path / "checkpoints").glob("step-*"))[-1]
    file = next(newest.glob("*.safetensors"))
    file.write_bytes(file.read_bytes()[:-7])
    again = trainer(**options)
    again.run(resume=True)
    assert torch.equal(weights(again.module), weights(whole.module))
    assert values(tmp_path)[-1] == values(tmp_path / "whole")[-1]


def test_another_run_is_not_continued(tmp_path):
    trainer(steps=3, folder=tmp_path).run()
    with pytest.raises(ArgumentError, match="its accumulate: 1, here 2"):
        trainer(steps=3, folder=tmp_path, accumulate=2).run(resume=True)
    with pytest.raises(ArgumentError, match="its data: None, here mnist"):
        trainer(steps=3, folder=tmp_path, asked={"data": "mnist"}).run(resume=True)
    trainer(steps=2, folder=tmp_path, accumulate=2).run()
    assert (tmp_path / "earlier-1" / "events.jsonl").exists()
    assert read_events(tmp_path)[-1]["step"] == 2


def test_other_files_belong_to_the_run(tmp_path):
    trainer(steps=2, folder=tmp_path, files={"notes.txt": b"first"}).run()
    assert (tmp_path / "notes.txt").read_bytes() == b"first"
    # A run that goes on keeps them.
    trainer(steps=4, folder=tmp_path, files={"notes.txt": b"again"}).run(resume=True)
    assert (tmp_path / "notes.txt").read_bytes() == b"first"
    trainer(steps=2, folder=tmp_path, files={"notes.txt": b"second"}).run()
    assert (tmp_path / "notes.txt").read_bytes() == b"second"
    assert (tmp_path / "earlier-1" / "notes.txt").read_bytes() == b"first"


def test_what_is_written_later_is_moved_aside_with_its_run(tmp_path: Path) -> None:
    trainer(steps=2, folder=tmp_path, files={"made": None}).run()
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "weights").write_bytes(b"first")
    trainer(steps=3, folder=tmp_path, files={"made": None}).run()
    assert not (tmp_path / "made").exists()
    assert (tmp_path / "earlier-1" / "made" / "weights").read_bytes() == b"first"


def test_there_must_be_a_run_to_resume(tmp_path):
    with pytest.raises(StoreError, match="no run to resume"):
        trainer(folder=tmp_path).run(resume=True)
    with pytest.raises(StoreError, match="needs a `folder`"):
        trainer().run(resume=True)
    assert trainer(steps=2, folder=tmp_path).run(resume="auto").step == 2


def study(count: int, ranks: int) -> str:
    command = [sys.executable, str(STUDY), "--device", "cpu", "--count", str(count)]
    done = subprocess.run(
        [*command, "--ranks", str(ranks)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 2])
def test_runs_that_are_killed_end_with_the_same_bits(ranks):
    assert f"{ranks} ranks: 5 of 5 runs" in study(5, ranks)


@pytest.mark.parametrize("lost", ["all", "half a line"])
def test_a_lost_log_does_not_stop_a_run(tmp_path, lost):
    options = {"folder": tmp_path, "saving": Saving(every=4)}
    trainer(steps=8, **options).run()
    log = tmp_path / "events.jsonl"
    if lost == "all":
        log.unlink()
    else:
        log.write_bytes(log.read_bytes()[:200])
    assert trainer(steps=12, **options).run(resume=True).step == 12
    steps = [e["step"] for e in read_events(tmp_path) if e["event"] == "train"]
    assert steps[-4:] == [9, 10, 11, 12]


def test_a_run_continues_only_with_its_settings(tmp_path):
    def betas(*values):
        return lambda module: groups(module, {"//*": AdamW(rate=0.1, betas=values)})

    trainer(steps=3, folder=tmp_path, optimizer=betas(0.9, 0.99)).run()
    with pytest.raises(ArgumentError, match=r"beta2 0\.99"):
        trainer(steps=4, folder=tmp_path, optimizer=betas(0.9, 0.95)).run(resume=True)
    with pytest.raises(ArgumentError, match="48 rows, 8 in a batch"):
        trainer(steps=4, size=4, folder=tmp_path, optimizer=betas(0.9, 0.99)).run(resume=True)
    apart = TensorBatches(data(), 8, seed=1, endless=False)
    with pytest.raises(ArgumentError, match="passes apart"):
        trainer(steps=4, source=apart, folder=tmp_path, optimizer=betas(0.9, 0.99)).run(
            resume=True
        )
    again = trainer(steps=4, folder=tmp_path, optimizer=betas(0.9, 0.99))
    assert again.run(resume=True).step == 4
