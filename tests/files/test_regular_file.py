"""Only regular files are read, and at most the given number of bytes."""

import os
from pathlib import Path

import pytest

from hotgrid.errors import DamagedError
from hotgrid.files import open_regular, read_regular, regular_stat


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "notes.txt").write_bytes(b"text")
    return tmp_path / "notes.txt"


def test_a_regular_file_is_read_up_to_its_limit(path: Path):
    assert read_regular(path, 4) == b"text"
    with pytest.raises(DamagedError, match=r"notes.txt` is damaged: it is larger than 3 bytes"):
        read_regular(path, 3)


def test_links_folders_and_pipes_are_refused_without_waiting(path: Path):
    others = [path.with_name(name) for name in ("link", "folder", "pipe")]
    others[0].symlink_to(path)
    others[1].mkdir()
    os.mkfifo(others[2])
    for other in others:
        for read in (open_regular, regular_stat, lambda each: read_regular(each, 10)):
            with pytest.raises(DamagedError, match=rf"{other.name}` .*not a regular file"):
                read(other)


def test_links_are_followed_where_that_is_wanted(path: Path):
    link = path.with_name("link")
    link.symlink_to(path)
    assert regular_stat(link, links=True) == regular_stat(path)
    with pytest.raises(DamagedError, match="link` is a link, not a regular file"):
        regular_stat(link)


def test_a_file_that_is_missing_is_named(path: Path):
    with pytest.raises(DamagedError, match=r"gone.txt` is missing$"):
        read_regular(path.with_name("gone.txt"), 10)
    with pytest.raises(FileNotFoundError):
        open_regular(path.with_name("gone.txt"))
