"""Files that appear whole or not at all."""

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path

from hotgrid.errors import ArgumentError, HotgridError, StoreError

# Another path would help. Anything else is a fault of the disk, not of what was asked.
_OF_THE_PATH = {
    errno.EACCES,
    errno.EEXIST,
    errno.EINVAL,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EPERM,
    errno.EROFS,
}


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a place aside to write to; when that went well, put it at `path` in one move.

    The folder is made if need be. The file aside lies in the same folder, is hidden and
    has the suffix of the path. After the block the file and its name are on the disk,
    not only in the memory of the system, and the umask says who may read it. When the
    block fails, the old file is as it was and nothing is left beside it.

    Args:
        path: Where the file shall be.

    Raises:
        ArgumentError: The path cannot be written, in the words of the system.
        StoreError: The disk is full or failed.

    Example:
        >>> with whole_file(Path("notes.txt")) as aside:
        ...     _ = aside.write_text("all of it")
        >>> Path("notes.txt").read_text()
        'all of it'
    """
    aside = path.with_name(f".{path.stem}-{uuid.uuid4().hex}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.touch(exist_ok=False)
        mode = aside.stat().st_mode
        yield aside
        with aside.open("rb") as written:
            # Some writers put a file of their own there, which nobody else may read.
            os.fchmod(written.fileno(), stat.S_IMODE(mode))
            os.fsync(written.fileno())
        aside.replace(path)
        sync_folder(path.parent)
    except HotgridError:
        raise
    except OSError as problem:
        kind = ArgumentError if problem.errno in _OF_THE_PATH else StoreError
        raise kind(f"cannot write `{path}`: {problem.strerror or problem}") from problem
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk: a file that has none is lost with the power."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as problem:
        if problem.errno != errno.EINVAL:  # some network file systems do it by themselves
            raise
    finally:
        os.close(descriptor)
