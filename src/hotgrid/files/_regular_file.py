"""Reading files that may come from someone else: no link, no pipe, no device."""

import errno
import os
import stat
from pathlib import Path

from hotgrid.errors import DamagedError

# The system's answers if the path ends in a link, a socket, a device or a folder.
_NOT_REGULAR = (errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.EISDIR)


def open_regular(path: Path) -> int:
    """Open a regular file for reading, and return its descriptor.

    Raises:
        DamagedError: It is a link, a pipe, a folder or a device.
        OSError: It is missing or cannot be read.

    Example:
        >>> _ = Path("notes.txt").write_text("all of it")
        >>> with os.fdopen(open_regular(Path("notes.txt"))) as file:
        ...     file.read()
        'all of it'
    """
    try:
        # Without O_NONBLOCK, opening a pipe waits for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as problem:
        if problem.errno in _NOT_REGULAR:
            raise _refused(path) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _refused(path)
    return descriptor


def read_regular(path: Path, limit: int) -> bytes:
    """Return the bytes of a regular file, at most `limit`.

    Raises:
        DamagedError: It is not a regular file, is missing, too large or cannot be read.

    Example:
        >>> _ = Path("notes.txt").write_text("all of it")
        >>> read_regular(Path("notes.txt"), limit=1000)
        b'all of it'
    """
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            data = file.read(limit + 1)
    except DamagedError:
        raise
    except FileNotFoundError:
        raise DamagedError(f"`{path}` is missing") from None
    except OSError as problem:
        raise DamagedError(f"`{path}` cannot be read: {problem.strerror}") from problem
    if len(data) > limit:
        raise DamagedError(f"`{path}` is damaged: it is larger than {limit} bytes")
    return data


def regular_stat(path: Path, *, links: bool = False) -> os.stat_result:
    """Return the `lstat` of a regular file.

    Args:
        path: The file.
        links: Follow links.

    Raises:
        DamagedError: It is a link, a pipe, a folder or a device.
        OSError: It is missing or cannot be reached.

    Example:
        >>> _ = Path("notes.txt").write_text("all of it")
        >>> regular_stat(Path("notes.txt")).st_size
        9
    """
    found = path.stat() if links else path.lstat()
    if not stat.S_ISREG(found.st_mode):
        kinds = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        kind = kinds.get(stat.S_IFMT(found.st_mode))
        raise DamagedError(f"`{path}` is {f'{kind}, ' if kind else ''}not a regular file")
    return found


def _refused(path: Path) -> DamagedError:
    return DamagedError(f"`{path}` is damaged: it is not a regular file")
