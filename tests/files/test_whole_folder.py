"""Folders are replaced as a whole; a kill at any moment loses neither the old nor the new."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hotgrid.errors import ArgumentError, StoreError
from hotgrid.files import restore_folder, whole_folder

# A replacement syncs two files, two folders and the parent, and renames twice.
CALLS = [*(("fsync", at) for at in range(5)), *(("rename", at) for at in range(2))]


class Killed(BaseException):
    """What follows does not happen: the process is gone."""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def text(path: Path) -> str:
    return (path / "notes.txt").read_text()


def write(path: Path, content: str) -> None:
    with whole_folder(path) as aside:
        (aside / "notes.txt").write_text(content)
        (aside / "deep").mkdir()
        (aside / "deep" / "more.txt").write_text(content)


def fail_at(
    patch: pytest.MonkeyPatch, name: str, at: int, problem: BaseException, *, for_good: bool
) -> None:
    """Let the call of `os.<name>` with the number `at` fail; `for_good`: all calls after it."""
    seen = {"fsync": 0, "rename": 0, "dead": False}

    def patched(which: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            if which == name and seen[which] == at:
                seen["dead"] = for_good
                seen[which] += 1
                raise problem
            if seen["dead"]:
                raise problem
            if which in seen:
                seen[which] += 1
            return function(*given, **named)

        return call

    for module, which in ((os, "fsync"), (os, "rename"), (shutil, "rmtree")):
        patch.setattr(module, which, patched(which, getattr(module, which)))


def test_a_new_folder_replaces_the_old_one(tmp_path: Path):
    path = tmp_path / "deep" / "model"
    for content in ("first", "second"):
        with whole_folder(path) as aside:
            assert (aside.parent, aside.name[0]) == (path.parent, ".")
            (aside / f"{content}.txt").write_text(content)
        assert names(path) == [f"{content}.txt"]
        assert names(path.parent) == ["model"]


@pytest.mark.parametrize(
    "problem", [OSError(28, "No space left on device"), KeyboardInterrupt()]
)
def test_a_block_that_fails_leaves_the_old_folder_and_nothing_else(tmp_path: Path, problem):
    path = tmp_path / "model"
    write(path, "old")
    with pytest.raises((StoreError, KeyboardInterrupt)) as caught, whole_folder(path) as aside:
        (aside / "notes.txt").write_text("half")
        raise problem
    if isinstance(problem, OSError):
        assert str(caught.value) == f"cannot write `{path}`: No space left on device"
    assert (text(path), names(tmp_path)) == ("old", ["model"])


@pytest.mark.parametrize(("name", "at"), CALLS)
def test_an_error_leaves_a_whole_folder(tmp_path: Path, name: str, at: int):
    path = tmp_path / "model"
    write(path, "old")
    with pytest.MonkeyPatch.context() as patch:
        fail_at(patch, name, at, OSError(5, "Input/output error"), for_good=False)
        with pytest.raises(StoreError, match="Input/output error"):
            write(path, "new")
    # Only the last sync comes after the new folder.
    assert text(path) == ("new" if (name, at) == ("fsync", 4) else "old")
    write(path, "next")
    assert (text(path), names(tmp_path)) == ("next", ["model"])


@pytest.mark.parametrize("reader", [True, False])
@pytest.mark.parametrize(("name", "at"), CALLS)
def test_a_kill_leaves_a_whole_folder(tmp_path: Path, name: str, at: int, reader: bool):
    path = tmp_path / "model"
    write(path, "old")
    with pytest.MonkeyPatch.context() as patch:
        fail_at(patch, name, at, Killed(), for_good=True)
        with pytest.raises(Killed):
            write(path, "new")
    assert path.exists() == ((name, at) != ("rename", 1))
    if reader:
        restore_folder(path)
        assert text(path) == ("new" if (name, at) == ("fsync", 4) else "old")
    else:
        with pytest.raises(KeyboardInterrupt), whole_folder(path):
            raise KeyboardInterrupt
        assert text(path) == ("new" if (name, at) == ("fsync", 4) else "old")
    write(path, "next")
    assert text(path) == "next"
    assert not [name for name in names(tmp_path) if name.endswith("-old")]


def test_only_folders_of_the_same_name_are_restored(tmp_path: Path):
    for name in ("a-b", "[a]"):
        write(tmp_path / name, name)
        (tmp_path / name).rename(tmp_path / f".{name}-{'0' * 32}-old")
    restore_folder(tmp_path / "a")
    restore_folder(tmp_path / "none" / "a")
    assert not (tmp_path / "a").exists()
    restore_folder(tmp_path / "[a]")
    assert names(tmp_path) == [f".a-b-{'0' * 32}-old", "[a]"]


def test_another_writer_in_between_loses(tmp_path: Path):
    path = tmp_path / "model"
    write(path, "old")
    with whole_folder(path) as aside:
        (aside / "notes.txt").write_text("last")
        write(path, "first")
    assert (text(path), names(tmp_path)) == ("last", ["model"])


def test_a_folder_that_comes_back_between_the_renames_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path, rename = tmp_path / "model", os.rename
    write(path, "old")

    def restored(source: Path, target: Path) -> None:
        rename(source, target)
        if str(target).endswith("-old"):
            monkeypatch.setattr(os, "rename", rename)
            restore_folder(path)  # a reader

    monkeypatch.setattr(os, "rename", restored)
    write(path, "new")
    assert (text(path), names(tmp_path)) == ("new", ["model"])


def test_files_are_on_the_disk_before_their_folder_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    order: list[str] = []
    sync, rename, remove = os.fsync, os.rename, shutil.rmtree

    def fsync(descriptor: int) -> None:
        place = Path(f"/proc/self/fd/{descriptor}").readlink()
        order.append("parent" if place == tmp_path else place.suffix or "folder")
        sync(descriptor)

    def renamed(source: Path, target: Path) -> None:
        order.append("rename")
        rename(source, target)

    def removed(path: Path, **named: Any) -> None:
        order.append("remove" if path.exists() else "nothing")
        remove(path, **named)

    write(tmp_path / "model", "old")
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", renamed)
    monkeypatch.setattr(shutil, "rmtree", removed)
    write(tmp_path / "model", "new")
    synced = [".txt", "folder", ".txt", "folder"]
    assert order == [*synced, "rename", "rename", "parent", "nothing", "remove"]


def test_a_link_goes_on_to_point_to_the_folder(tmp_path: Path):
    write(tmp_path / "real", "old")
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (text(tmp_path / "real"), names(tmp_path)) == ("new", ["link", "real"])


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    for path in (tmp_path / "file", tmp_path / "file" / "model"):
        with pytest.raises(ArgumentError, match=r"cannot write `.*`"), whole_folder(path):
            pass
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_problem_with_another_file_is_not_told_of_this_one(tmp_path: Path):
    other = tmp_path / "other.txt"
    with pytest.raises(FileNotFoundError) as caught, whole_folder(tmp_path / "model"):
        other.read_bytes()
    assert caught.value.filename == str(other)
    assert names(tmp_path) == []
