"""Files are written atomically, and are on the disk when the block ends."""

import os
from pathlib import Path

import pytest

from hotgrid.errors import ArgumentError, StoreError
from hotgrid.files import whole_file


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_replaces_the_old_one(tmp_path: Path):
    path = tmp_path / "deep" / "notes.txt"
    for text in ("first", "second"):
        with whole_file(path) as aside:
            assert (aside.parent, aside.suffix, aside.name[0]) == (path.parent, ".txt", ".")
            aside.write_text(text)
        assert path.read_text() == text
        assert names(path.parent) == ["notes.txt"]


@pytest.mark.parametrize(
    "problem", [OSError(28, "No space left on device"), KeyboardInterrupt()]
)
def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path, problem):
    path = tmp_path / "notes.txt"
    path.write_text("old")
    with pytest.raises((StoreError, KeyboardInterrupt)) as caught, whole_file(path) as aside:
        aside.write_text("half")
        raise problem
    if isinstance(problem, OSError):
        assert str(caught.value) == f"cannot write `{path}`: No space left on device"
    assert path.read_text() == "old"
    assert names(tmp_path) == ["notes.txt"]


def test_it_waits_for_the_disk_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    waits: list[int] = []
    monkeypatch.setattr(os, "fsync", waits.append)
    with whole_file(tmp_path / "notes.txt", synced=False) as aside:
        aside.write_text("all of it")
    assert not waits
    assert (tmp_path / "notes.txt").read_text() == "all of it"
    with whole_file(tmp_path / "notes.txt") as aside:
        aside.write_text("again")
    assert len(waits) == 2


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    path = tmp_path / "file" / "notes.txt"
    with pytest.raises(ArgumentError, match=r"cannot write `.*notes\.txt`"), whole_file(path):
        pass


def test_the_file_is_on_the_disk_before_its_name_and_the_name_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    order: list[str] = []
    sync, replace = os.fsync, Path.replace

    def fsync(descriptor: int) -> None:
        place = Path(f"/proc/self/fd/{descriptor}").readlink()
        order.append("folder" if place == tmp_path else "file")
        sync(descriptor)

    def renamed(self: Path, target: Path) -> Path:
        order.append("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", renamed)
    with whole_file(tmp_path / "notes.txt") as aside:
        aside.write_text("text")
    assert order == ["file", "rename", "folder"]


@pytest.mark.parametrize("umask", [0o022, 0o027])
def test_the_umask_sets_the_permissions(tmp_path: Path, umask: int):
    before = os.umask(umask)
    try:
        with whole_file(tmp_path / "notes.txt") as aside:
            aside.unlink()
            os.close(os.open(aside, os.O_CREAT | os.O_WRONLY, 0o600))
    finally:
        os.umask(before)
    assert (tmp_path / "notes.txt").stat().st_mode & 0o777 == 0o666 & ~umask


def test_names_of_temporary_files_differ_between_hosts_processes_and_calls(tmp_path: Path):
    path = tmp_path / ("long" * 60 + ".txt")
    with whole_file(path) as first, whole_file(path) as second:
        assert first != second
        assert f"-{os.uname().nodename}-{os.getpid()}-" in first.name
    assert path.exists()


def test_a_problem_with_another_file_is_not_told_of_this_one(tmp_path: Path):
    other = tmp_path / "other.txt"
    with pytest.raises(FileNotFoundError) as caught, whole_file(tmp_path / "notes.txt"):
        other.read_bytes()
    assert caught.value.filename == str(other)
    assert names(tmp_path) == []
