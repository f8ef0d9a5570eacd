"""One folder, one run: locked while it runs, moved aside as a whole, never mixed, never
lost."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hotgrid.errors import ArgumentError, DamagedError, StoreError
from hotgrid.files import whole_file
from hotgrid.store import RunFolder
from hotgrid.store._run import _lock as _run_lock

from .ranks import on_ranks

ASKED = {"model": "heat", "seed": "1"}
HOLDER = """
import sys, time
from hotgrid.store import RunFolder
with RunFolder(sys.argv[1]) as run:
    run.begin({"seed": "1"})
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_run_lock, "_PATIENCE", 0.3)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def contents(folder: Path) -> dict[str, bytes]:
    found = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    return {str(name): path.read_bytes() for name, path in found.items()}


def made(folder: Path, asked: dict[str, str], *files: str, **options: Any) -> RunFolder:
    """A run that has written its files, each with its settings."""
    with RunFolder(folder, former=("*.old",)) as run:
        run.begin(asked, files=files, **options)
        for name in (*files, "checkpoints/step"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(str(asked))
    return run


def test_runs_get_numbers_and_keep_all_their_files(tmp_path: Path):
    for seed, more in (("1", ("a.csv", "films/a.gif")), ("2", ("b.csv",)), ("3", ("a.csv",))):
        made(tmp_path, {"seed": seed}, *more)
    (tmp_path / "mine.txt").touch()
    made(tmp_path, {"seed": "4"})
    record, saved = "run.toml", "checkpoints/step"
    for number, files in enumerate((("a.csv", "films/a.gif"), ("b.csv",), ("a.csv",)), 1):
        aside = contents(tmp_path / f"earlier-{number}")
        assert {*aside} == {record, saved, *files}
        assert {aside[name] for name in (*files, saved)} == {f"{{'seed': '{number}'}}".encode()}
    assert names(tmp_path) >= {record, "checkpoints", "mine.txt"}
    assert not (tmp_path / "a.csv").exists()


def test_files_in_the_way_are_moved_even_if_no_run_is_known_of_them(tmp_path: Path):
    (tmp_path / "a.csv").write_text("of somebody")
    made(tmp_path, ASKED, "a.csv")
    assert contents(tmp_path / "earlier-1") == {"a.csv": b"of somebody"}


@pytest.mark.parametrize("record", [b"", b"\xff", b"format = 3", b"format = 'hotgrid run'"])
def test_a_record_that_cannot_be_read_is_still_a_run(tmp_path: Path, record: bytes):
    made(tmp_path, ASKED)
    (tmp_path / "run.toml").write_bytes(record)
    (tmp_path / "x.old").touch()
    with RunFolder(tmp_path) as run, pytest.raises(DamagedError, match=r"run\.toml` is dam"):
        run.begin(ASKED, resume=True)
    made(tmp_path, ASKED)
    assert names(tmp_path / "earlier-1") == {"run.toml", "checkpoints", "x.old"}


def test_a_foreign_record_moves_nothing_out_of_the_folder(tmp_path: Path):
    out = tmp_path / "out"
    made(out, ASKED, "a.csv")
    (tmp_path / "mine").touch()
    record = out / "run.toml"
    record.write_text(record.read_text().replace('"a.csv"', '"../mine"'))
    made(out, ASKED)
    assert (tmp_path / "mine").exists()
    record.unlink()
    os.mkfifo(record)
    made(out, ASKED)
    assert (out / "earlier-2" / "run.toml").is_fifo()


def test_of_long_settings_what_differs_is_shown(tmp_path: Path):
    middle = ", ".join(f"stage {n}" for n in range(40))
    made(tmp_path, {"recipe": f"Recipe(rate=0.1, {middle}, decay=0.5)"})
    with RunFolder(tmp_path) as run, pytest.raises(ArgumentError) as caught:
        run.begin({"recipe": f"Recipe(rate=0.2, {middle}, decay=0.5, ema)"}, resume=True)
    said = (
        "its recipe: Recipe(rate=0.1 ... decay=0.5), here Recipe(rate=0.2 ... decay=0.5, ema)."
    )
    assert said in str(caught.value)


def test_resume_needs_the_same_run(tmp_path: Path):
    first = made(tmp_path, ASKED, "a.csv", job="1")
    before = contents(tmp_path)
    with RunFolder(tmp_path) as run, pytest.raises(ArgumentError) as caught:
        run.begin({"model": "wave", "seed": "1", "size": "8"}, resume=True)
    assert "its model: heat, here wave; its size: None, here 8. Use" in str(caught.value)
    assert contents(tmp_path) == before
    again = made(tmp_path, ASKED, "b.csv", resume=True)
    assert (again.id, again.goes_on, first.goes_on) == (first.id, True, False)
    made(tmp_path, ASKED)
    assert names(tmp_path / "earlier-1") == {"run.toml", "checkpoints", "a.csv", "b.csv"}
    with RunFolder(tmp_path / "none") as run, pytest.raises(StoreError, match="no run to res"):
        run.begin(ASKED, resume=True)
    assert not (tmp_path / "none").exists()


def test_a_restart_is_known_by_job_and_by_what_was_asked(tmp_path: Path):
    first = made(tmp_path, ASKED, job="1")
    assert made(tmp_path, ASKED, job="1").id == first.id
    others = [made(tmp_path, ASKED, job="2"), made(tmp_path, {"seed": "2"}, job="2")]
    others += [made(tmp_path, ASKED), made(tmp_path, ASKED)]
    assert len({run.id for run in (first, *others)}) == 5
    assert not any(run.goes_on for run in others)


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_a_live_run_is_not_disturbed_and_a_dead_one_holds_nothing(tmp_path: Path, holder):
    with pytest.raises(StoreError, match=f"is in use by process {holder.pid} on .*: -c"):
        RunFolder(tmp_path / "out").__enter__()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert names(tmp_path / "out") == {"run.toml", ".run.lock"}
    with RunFolder(tmp_path / "out") as run:
        run.begin(ASKED)
    assert names(tmp_path / "out") == {"run.toml", "earlier-1"}


def test_a_lock_that_is_removed_while_another_waits_for_it_is_taken_anew(tmp_path: Path):
    """The waiter has the old file open; a lock on that would not exclude other processes."""
    with RunFolder(tmp_path) as first:
        waiter = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE
        )
        time.sleep(0.2)
        first.begin(ASKED)
    assert waiter.stdout is not None
    assert waiter.stdout.readline() == b"held\n"
    with pytest.raises(StoreError, match="is in use by"):
        RunFolder(tmp_path).__enter__()
    waiter.kill()
    waiter.communicate()


def test_ranks_hold_the_lock_of_their_launcher(tmp_path: Path):
    """They can enter while it holds the lock, and keep it when the launcher is gone."""
    out = tmp_path / "out"
    with RunFolder(out) as launcher, launcher.shared() as descriptors:
        rank = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(out)],
            stdout=subprocess.PIPE,
            pass_fds=descriptors,
        )
        assert rank.stdout is not None
        assert rank.stdout.readline() == b"held\n"
        # As if it had been killed: the file is closed, and nothing is cleaned up.
        lock, launcher._lock = launcher._lock, None
        assert lock is not None
        os.close(lock.descriptor)
    try:
        with pytest.raises(StoreError, match="is in use by"):
            RunFolder(out).__enter__()
    finally:
        rank.kill()
        rank.communicate()
    with RunFolder(out):
        pass


def test_a_folder_that_is_removed_is_noticed(tmp_path: Path):
    out = tmp_path / "out"
    with RunFolder(out) as run:
        run.begin(ASKED)
        run.expect_there()
        shutil.rmtree(out)
        for _ in range(2):
            with pytest.raises(StoreError, match="was removed or replaced while the run"):
                run.expect_there()
            out.mkdir(exist_ok=True)
    assert names(out) == set()


def test_half_written_files_of_killed_processes_go(tmp_path: Path):
    out = tmp_path
    made(out, ASKED)
    with pytest.raises(KeyboardInterrupt), whole_file(out / "fields.npz") as aside:
        raise KeyboardInterrupt
    aside.touch()
    (out / f".scratch-{'0f' * 16}").mkdir()
    (out / "checkpoints" / f".saving-step-000000001-{'0f' * 16}").mkdir()
    (out / ".mine").touch()
    made(out, ASKED, resume=True)
    assert names(out) == {"run.toml", "checkpoints", ".mine"}
    assert names(out / "checkpoints") == {"step"}


@pytest.mark.parametrize("then", ["new", "resume"])
def test_a_move_that_is_cut_short_at_any_place_is_finished_or_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str
):
    files = ("a.csv", "films/a.gif", "z.csv")
    rename = Path.rename
    for cut in range(6):
        out = tmp_path / str(cut)
        made(out, ASKED, *files)
        before = contents(out)
        done = []

        def stopped(self: Path, target: Path, cut: int = cut, done: list[Path] = done) -> Path:
            if len(done) == cut:
                raise KeyboardInterrupt
            done.append(self)
            return rename(self, target)

        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(Path, "rename", stopped)
            made(out, {"seed": "2"}, "a.csv")
        if then == "resume":
            with RunFolder(out) as run:
                run.begin(ASKED, files=files, resume=True)
            assert run.goes_on
            assert {**contents(out), "run.toml": b""} == {**before, "run.toml": b""}
        else:
            made(out, {"seed": "3"}, "a.csv")
            assert contents(out / "earlier-1") == before
            assert names(out) - {"films"} == {"run.toml", "checkpoints", "a.csv", "earlier-1"}


def test_ranks_agree_and_the_first_does_the_work(tmp_path: Path):
    def work(group: Any) -> Any:
        with RunFolder(tmp_path, group=group) as run:
            run.begin(ASKED)
            run.expect_there()
            return run.id, run.goes_on

    for found in (on_ranks(3, work), on_ranks(2, work)):
        assert len({*found}) == 1
        assert found[0][1] is False
    assert names(tmp_path) == {"run.toml", "earlier-1"}

    def broken(group: Any) -> Any:
        with RunFolder(tmp_path, group=group) as run:
            run.begin({"seed": "9"}, resume=True)

    for problem in on_ranks(2, broken):
        with pytest.raises(ArgumentError, match="its seed: 1, here 9"):
            raise problem
