"""Atomic replacement of folders."""

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from hotgrid.errors import ArgumentError, HotgridError

from ._whole_file import sync_folder
from ._write_errors import raise_write_error


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder to write into, and move it to `path` once the block succeeds.

    Missing parents are created. The temporary folder is hidden, beside `path`, and its name
    has a random part, so that writers on a shared disk do not collide. After the block the
    files and their names are on the disk, and the old folder is removed. If the block fails,
    the old folder is unchanged and the temporary one is removed.

    A folder cannot be replaced in one step: the old one is moved aside (`.name-...-old`), then
    the new one is moved in. If the process is killed in between, `path` is missing, and the
    next `whole_folder` or `restore_folder` moves the old folder back.

    Args:
        path: The folder to write. If it is a link, the folder it points to is replaced.

    Raises:
        ArgumentError: The path cannot be written, or is a file.
        StoreError: The disk is full or failed.
        OSError: The block could not read another file.

    Example:
        >>> with whole_folder(Path("model")) as aside:
        ...     _ = (aside / "notes.txt").write_text("all of it")
        >>> Path("model/notes.txt").read_text()
        'all of it'
    """
    path = _resolved(path)
    restore_folder(path)
    if path.exists() and not path.is_dir():
        raise ArgumentError(f"cannot write `{path}`: it is a file, not a folder")
    aside = path.with_name(f".{path.name}-{os.urandom(16).hex()}")
    try:
        aside.mkdir(parents=True)
        yield aside
        _sync(aside)
        _replace(path, aside)
        sync_folder(path.parent)
    except HotgridError:
        raise
    except OSError as problem:
        raise_write_error(path, problem, aside, path)
    finally:
        restore_folder(path)
        shutil.rmtree(aside, ignore_errors=True)
    _remove_replaced(path)


def restore_folder(path: Path) -> None:
    """Move the old folder back where `whole_folder` was killed before the new one was there.

    Call it before reading a folder that `whole_folder` writes. It does nothing if `path`
    exists, and is safe while others write.

    Example:
        >>> restore_folder(Path("model"))
    """
    path = _resolved(path)
    if path.exists():
        return
    # Errors: another process was faster, or this one may only read here.
    with contextlib.suppress(OSError):
        if old := _moved_aside(path):
            max(old, key=lambda each: each.stat().st_ctime_ns).rename(path)


def _resolved(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _moved_aside(path: Path) -> list[Path]:
    """Old folders of `path` that are still there."""
    # The ending differs from other temporary names: those may be removed at any time.
    pattern = re.compile(rf"\.{re.escape(path.name)}-[0-9a-f]{{32}}-old")
    if not path.parent.is_dir():
        return []
    return [each for each in path.parent.iterdir() if pattern.fullmatch(each.name)]


def _sync(folder: Path) -> None:
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            file = Path(place, name)
            if not file.is_symlink():
                with file.open("rb") as written:
                    os.fsync(written.fileno())
        sync_folder(Path(place))


def _replace(path: Path, new: Path) -> None:
    while True:
        with contextlib.suppress(FileNotFoundError):
            path.rename(path.with_name(f".{path.name}-{os.urandom(16).hex()}-old"))
        try:
            new.rename(path)
            return
        except OSError as problem:
            # Another process has written or restored the folder in between.
            if problem.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise


def _remove_replaced(path: Path) -> None:
    # Listed before the check: these were moved aside before what is there came.
    old = _moved_aside(path)
    if path.exists():
        for each in old:
            shutil.rmtree(each, ignore_errors=True)
