"""Saving in the background: a copy, one at a time, and no failure is lost."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from hotgrid.errors import StoreError
from hotgrid.store import Checkpoints, Shard, _save

from .ranks import on_ranks


class Gate:
    """Holds every write back until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self._open, self.begun = threading.Event(), threading.Event()
        self.running = self.most = 0
        write = _save.write_shard_file

        def held(*arguments: Any) -> Any:
            self.running += 1
            self.most = max(self.most, self.running)
            self.begun.set()
            assert self._open.wait(60)
            self.running -= 1
            return write(*arguments)

        monkeypatch.setattr(_save, "write_shard_file", held)

    def open(self) -> None:
        self._open.set()


def test_the_caller_goes_on_and_may_change_everything(tmp_path, monkeypatch):
    gate = Gate(monkeypatch)
    checkpoints = Checkpoints(tmp_path)
    u, extra = torch.arange(6.0).view(2, 3), {"list": [1]}
    path = checkpoints.save(1, {"u": u.T}, extra=extra, asynchronous=True)
    assert gate.begun.wait(60)
    u.zero_()
    extra["list"].append(2)
    assert not path.exists()
    assert checkpoints.steps() == []
    gate.open()
    checkpoints.wait()
    loaded = checkpoints.load()
    assert loaded.tensors["u"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert loaded.extra == {"list": [1]}


def test_at_most_one_is_in_flight_and_loading_waits_for_it(tmp_path, monkeypatch):
    gate = Gate(monkeypatch)
    checkpoints = Checkpoints(tmp_path)
    u = torch.zeros(3)
    opener = threading.Timer(0.05, gate.open)
    opener.start()
    for step in range(1, 4):
        checkpoints.save(step, {"u": u.fill_(step)}, asynchronous=True)
    assert gate.most == 1
    assert checkpoints.load().tensors["u"].tolist() == [3, 3, 3]
    assert checkpoints.steps() == [1, 2, 3]
    for step in (1, 2):
        assert checkpoints.load(step).tensors["u"].tolist() == [step] * 3
    opener.join()


def test_memory_for_the_copy_is_kept_and_follows_the_tensors(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    places = []
    for step, tensor in enumerate(
        [torch.ones(4), torch.ones(4), torch.ones(5), torch.ones(5).int()]
    ):
        checkpoints.save(step, {"u": tensor}, asynchronous=True)
        checkpoints.wait()
        places.append(checkpoints._staging._kept["u"].data_ptr())
        kept = checkpoints.load(step).tensors["u"]
        assert torch.equal(kept, tensor)
        assert kept.dtype == tensor.dtype
    assert places[0] == places[1]


def test_what_is_lent_is_written_from_where_it_is(tmp_path, monkeypatch):
    seen = []
    write = _save.write_shard_file

    def looked_at(path: Path, tensors: Any) -> Any:
        seen.extend(tensor.data_ptr() for tensor in tensors.values())
        return write(path, tensors)

    monkeypatch.setattr(_save, "write_shard_file", looked_at)
    u = torch.arange(6.0)
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(1, {"u": u}, asynchronous=True, copy=False)
    assert seen == [u.data_ptr()]
    assert torch.equal(checkpoints.load().tensors["u"], u)


def test_lending_keeps_the_memory_for_copies(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    places = []
    for step, copy in enumerate([True, False, True]):
        checkpoints.save(step, {"u": torch.ones(4) * step}, asynchronous=True, copy=copy)
        checkpoints.wait()
        places.append(checkpoints._staging._kept["u"].data_ptr())
        assert checkpoints.load(step).tensors["u"].tolist() == [step] * 4
    assert len({*places}) == 1


@pytest.mark.parametrize("changed", ["itself", "what it is part of"])
def test_a_change_of_what_is_lent_is_noticed(tmp_path, monkeypatch, changed):
    whole = torch.zeros(4, 3)
    u = whole[1:3]
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, {"u": u})
    gate = Gate(monkeypatch)
    checkpoints.save(2, {"u": u}, asynchronous=True, copy=False)
    (u if changed == "itself" else whole).add_(1)
    gate.open()
    with pytest.raises(StoreError, match="`u` was changed while step 2 was written"):
        checkpoints.wait()
    assert checkpoints.steps() == [1]
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001"]


def test_what_is_lent_may_come_from_inference_mode(tmp_path):
    with torch.inference_mode(), Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(1, {"u": torch.ones(3)}, asynchronous=True, copy=False)
    assert checkpoints.load().tensors["u"].tolist() == [1, 1, 1]


def test_inference_mode_leaves_nothing_behind_in_the_copy(tmp_path):
    with Checkpoints(tmp_path) as checkpoints:
        with torch.inference_mode():
            checkpoints.save(1, {"u": torch.ones(3)}, asynchronous=True)
        checkpoints.save(2, {"u": torch.ones(3)}, asynchronous=True)
    assert checkpoints.steps() == [1, 2]


def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, tensors: Any) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_save, "write_shard_file", refuse)


@pytest.mark.parametrize("where", ["wait", "save", "load", "with"])
def test_a_failure_is_reported_at_once_and_raised_at_the_next_chance(
    tmp_path, monkeypatch, capsys, where
):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, {"u": torch.ones(1)})
    with monkeypatch.context() as patch, pytest.raises(StoreError, match="No space left"):
        failing(patch)
        with checkpoints:
            checkpoints.save(2, {"u": torch.ones(1)}, asynchronous=True)
            if where == "wait":
                checkpoints.wait()
            elif where == "save":
                checkpoints.save(3, {"u": torch.ones(1)})
            elif where == "load":
                checkpoints.load()
    assert "hotgrid.store error: step 2 was not saved: cannot write" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001"]
    # It was reported; saving continues.
    checkpoints.wait()
    checkpoints.save(3, {"u": torch.ones(1)}, asynchronous=True)
    assert checkpoints.load().step == 3


def test_what_breaks_a_block_is_not_hidden_by_a_failed_save(tmp_path, monkeypatch, capsys):
    failing(monkeypatch)
    with pytest.raises(ZeroDivisionError), Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(2, {"u": torch.ones(1)}, asynchronous=True)
        raise ZeroDivisionError
    assert "step 2 was not saved" in capsys.readouterr().err


def test_all_ranks_save_in_the_background_and_one_failure_is_raised_on_all(
    tmp_path, monkeypatch, capsys
):
    write = _save.write_shard_file

    def save(group: Any) -> Any:
        with Checkpoints(tmp_path, group=group) as checkpoints:
            for step in range(1, 4):
                cells = torch.full((2,), step)
                tensors = {"u": Shard(cells, (2 * group.rank,), (6,))}
                checkpoints.save(step, tensors, asynchronous=True)
                cells.zero_()
            checkpoints.wait()
            return checkpoints.load(wanted={"u": "1:2"}).tensors["u"].item()

    assert on_ranks(3, save) == [3, 3, 3]

    def refuse(path: Path, tensors: Any) -> Any:
        if path.name == "rank-00001.safetensors":
            raise PermissionError(13, "Permission denied")
        return write(path, tensors)

    def fail(group: Any) -> None:
        checkpoints = Checkpoints(tmp_path, group=group)
        tensors = {"u": Shard(torch.zeros(2), (2 * group.rank,), (6,))}
        checkpoints.save(4, tensors, asynchronous=True)
        checkpoints.wait()

    monkeypatch.setattr(_save, "write_shard_file", refuse)
    for rank, problem in enumerate(on_ranks(3, fail)):
        words = r"^cannot write" if rank == 1 else r"^rank 1: cannot write"
        with pytest.raises(StoreError, match=rf"{words} .*Permission denied; earlier"):
            raise problem
    capsys.readouterr()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"step-{step:09d}" for step in (1, 2, 3)
    ]


EXITING = """
import sys, time, torch
from hotgrid.store import Checkpoints, _save
write = _save.write_shard_file
def slow(path, tensors):
    time.sleep(0.3)
    if path.parent.name.startswith(".saving-step-000000002"):
        raise OSError(5, "Input/output error")
    return write(path, tensors)
_save.write_shard_file = slow
good, bad = Checkpoints(sys.argv[1]), Checkpoints(sys.argv[1])
good.save(1, {"u": torch.arange(3 << 20)}, asynchronous=True)
bad.save(2, {"u": torch.ones(1)}, asynchronous=True)
"""


def test_the_interpreter_waits_for_the_last_save_and_tells_of_a_failure(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", EXITING, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0
    assert done.stderr.startswith("hotgrid.store error: step 2 was not saved: cannot write")
    assert done.stderr.count("\n") == 1
    checkpoints = Checkpoints(tmp_path)
    assert checkpoints.steps() == [1]
    assert torch.equal(checkpoints.load().tensors["u"], torch.arange(3 << 20))
