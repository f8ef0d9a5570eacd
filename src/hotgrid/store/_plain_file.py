"""Opening files that may come from a stranger: never a link, a pipe or a device."""

import errno
import os
import stat
from pathlib import Path

from hotgrid.errors import DamagedError

# What the system says where the last part of the path is a link, a socket or no file.
_NOT_PLAIN = (errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.EISDIR)


def open_plain(path: Path) -> int:
    """Open a plain file for reading, and return its descriptor.

    Raises:
        DamagedError: It is a link, a pipe, a folder or a device.
        OSError: It is not there or cannot be read.
    """
    try:
        # Without O_NONBLOCK, opening a pipe waits for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as problem:
        if problem.errno in _NOT_PLAIN:
            raise _refused(path) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _refused(path)
    return descriptor


def read_plain(path: Path, most: int) -> bytes:
    """Read a plain file that has at most so many bytes.

    Raises:
        DamagedError: It is no plain file, not there, too large or cannot be read.
    """
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            data = file.read(most + 1)
    except DamagedError:
        raise
    except FileNotFoundError:
        raise DamagedError(f"`{path}` is missing: the checkpoint is not whole") from None
    except OSError as problem:
        raise DamagedError(f"`{path}` cannot be read: {problem.strerror}") from problem
    if len(data) > most:
        raise DamagedError(f"`{path}` is damaged: it is larger than {most} bytes")
    return data


def _refused(path: Path) -> DamagedError:
    return DamagedError(f"`{path}` is damaged: it is no plain file")
