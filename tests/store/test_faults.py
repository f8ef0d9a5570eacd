"""Full disks, closed folders, killed processes: what was saved before stays good."""

import contextlib
import errno
import fcntl
import os
import resource
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from hotgrid.errors import StoreError
from hotgrid.store import Checkpoints, Shard, _save

from .ranks import on_ranks

LARGE = {"u": torch.zeros(4 << 20)}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@contextlib.contextmanager
def small_files() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@contextlib.contextmanager
def small_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A disk of 4 MB where one may be mounted; else a system that says so on fsync."""
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    sync = os.fsync

    def full(descriptor: int) -> None:
        if os.fstat(descriptor).st_size > 4 << 20:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    try:
        with monkeypatch.context() as patch:
            if not mounted:
                patch.setattr(os, "fsync", full)
            yield
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_costs_only_the_new_step(tmp_path: Path, monkeypatch):
    with small_disk(tmp_path, monkeypatch):
        checkpoints = Checkpoints(tmp_path)
        checkpoints.save(1, {"u": torch.ones(9)})
        text = r"cannot write `.*rank-00000\.safetensors`: No space left on device " + (
            r"\([\d,]+ bytes are left\); earlier checkpoints are unchanged"
        )
        with pytest.raises(StoreError, match=text) as caught:
            checkpoints.save(2, LARGE)
        assert caught.value.__cause__.errno == errno.ENOSPC
        assert names(tmp_path) == ["step-000000001"]
        checkpoints.save(3, {"u": torch.full((9,), 3)})
        assert checkpoints.load().tensors["u"].unique().tolist() == [3]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_file_that_may_not_grow_costs_only_the_new_step(tmp_path, capsys, asynchronous):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, {"u": torch.ones(9)})
    with small_files(), pytest.raises(StoreError, match=r"File too large; earlier checkpoints"):
        checkpoints.save(2, LARGE, asynchronous=asynchronous)
        checkpoints.wait()
    capsys.readouterr()
    assert names(tmp_path) == ["step-000000001"]
    assert checkpoints.load().step == 1


def test_a_folder_that_may_not_be_written_is_named():
    """As an ordinary user: the superuser may write anywhere."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        uid = os.geteuid()
        try:
            if uid == 0:
                os.seteuid(65534)
            with pytest.raises(
                StoreError, match=rf"cannot write `{folder}`: Permission denied"
            ):
                Checkpoints(folder).save(1, LARGE)
            with pytest.raises(StoreError, match="Permission denied"):
                Checkpoints(Path(folder) / "run").save(1, LARGE)
        finally:
            os.seteuid(uid)
        assert names(Path(folder)) == []


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path):
    (tmp_path / "run").write_text("in the way")
    checkpoints = Checkpoints(tmp_path / "run")
    with pytest.raises(StoreError, match=r"cannot write `.*run`: "):
        checkpoints.save(1, LARGE)
    with pytest.raises(StoreError, match=r"cannot read `.*run`: Not a directory"):
        checkpoints.steps()


def test_a_host_that_does_not_share_the_folder_is_reported(tmp_path: Path):
    def save(group: Any) -> None:
        folder = tmp_path / "shared" if group.rank == 0 else tmp_path / "own"
        shard = Shard(torch.ones(2), (2 * group.rank,), (4,))
        Checkpoints(folder, group=group).save(1, {"u": shard})

    for problem in on_ranks(2, save):
        with pytest.raises(StoreError, match=r"not there for rank 1: .* all hosts share"):
            raise problem
    assert names(tmp_path / "shared") == []


def test_a_rank_that_is_gone_ends_the_save_of_the_others(tmp_path: Path, monkeypatch):
    write = _save.write_shard_file

    def die(path: Path, tensors: Any) -> Any:
        if path.name == "rank-00001.safetensors":
            raise SystemExit
        return write(path, tensors)

    monkeypatch.setattr(_save, "write_shard_file", die)

    def save(group: Any) -> None:
        shard = Shard(torch.ones(2), (2 * group.rank,), (4,))
        Checkpoints(tmp_path, group=group).save(1, {"u": shard})

    found = on_ranks(2, save)
    assert isinstance(found[0], threading.BrokenBarrierError)
    assert isinstance(found[1], SystemExit)
    assert names(tmp_path) == []


def test_an_interrupted_save_leaves_nothing(tmp_path: Path, monkeypatch):
    def interrupt(path: Path, tensors: Any) -> None:
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(_save, "write_shard_file", interrupt)
    with pytest.raises(KeyboardInterrupt):
        Checkpoints(tmp_path).save(1, LARGE)
    assert names(tmp_path) == []


def test_leftovers_go_but_not_what_another_is_writing(tmp_path: Path):
    left = [f".saving-step-000000007-{'0' * 32}", f".removing-step-000000003-{'1' * 32}"]
    busy, strange = f".saving-step-000000008-{'2' * 32}", ".saving-my-own-notes"
    for name in [*left, busy, strange]:
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "rank-00000.safetensors").write_bytes(b"half")
    lock = os.open(tmp_path / busy, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    checkpoints = Checkpoints(tmp_path)
    assert checkpoints.steps() == []
    assert checkpoints.latest() is None
    checkpoints.save(9, {})
    assert names(tmp_path) == sorted([busy, strange, "step-000000009"])
    os.close(lock)
    checkpoints.save(10, {})
    assert busy not in names(tmp_path)


def test_saving_goes_on_when_no_thread_can_be_started(tmp_path: Path, monkeypatch):
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        Checkpoints(tmp_path).save(1, LARGE)
    assert torch.equal(Checkpoints(tmp_path).load().tensors["u"], LARGE["u"])


# A process that has torch already is forked again and again, so that a kill costs
# milliseconds. Each child saves and is killed: first at every call to the system that
# Python can see, then at random moments.
KILLED = """
import os, random, signal, sys, time
import torch
from hotgrid.store import Checkpoints

folder = sys.argv[1]

def saved(last, cells):
    checkpoints = Checkpoints(folder, keep_last=2)
    first = (checkpoints.latest() or 0) + 1
    for step in range(first, first + last):
        checkpoints.save(step, {"u": torch.full((cells,), step)}, asynchronous=step % 2 == 0)
    checkpoints.wait()

def kill_at(count):
    left = [count]
    def tick(*_):
        left[0] -= 1
        if left[0] < 0:
            signal.raise_signal(signal.SIGKILL)
    sync = os.fsync
    def fsync(descriptor):
        tick()
        sync(descriptor)
        tick()
    os.fsync = fsync
    watched = ("open", "os.", "shutil.", "fcntl.", "mmap.")
    sys.addaudithook(lambda event, _: tick() if event.startswith(watched) else None)

def forked(work):
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return child

def check(before):
    checkpoints = Checkpoints(folder)
    latest = checkpoints.latest()
    if latest is None:
        assert before == 0, "all is lost"
        return 0
    loaded = checkpoints.load()
    assert loaded.step == latest >= before, (loaded.step, latest, before)
    assert (loaded.tensors["u"] == latest).all()
    for step in checkpoints.steps():
        assert (checkpoints.load(step).tensors["u"] == step).all()
    return latest

latest, kills, count = 0, 0, 0
while True:
    child = forked(lambda: (kill_at(count), saved(2, 10)))
    _, status = os.waitpid(child, 0)
    latest = check(latest)
    if not os.WIFSIGNALED(status):
        assert status == 0
        break
    kills, count = kills + 1, count + 1
chance = random.Random(4)
for _ in range(10):
    child = forked(lambda: saved(10**6, 1 << 20))
    time.sleep(chance.uniform(0, 0.12))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    latest = check(latest)
with Checkpoints(folder, keep_last=2) as checkpoints:
    checkpoints.save(latest + 1, {})
left = sorted(os.listdir(folder))
assert len(left) == 2 and all(name.startswith("step-") for name in left), left
print(kills)
"""


@pytest.mark.long
def test_a_process_killed_at_any_moment_leaves_a_good_newest_step(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", KILLED, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 50
