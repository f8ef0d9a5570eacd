"""Atomic writes of files."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from hotgrid.errors import HotgridError

from ._write_errors import raise_write_error


@contextlib.contextmanager
def whole_file(path: Path, *, synced: bool = True) -> Iterator[Path]:
    """Yield a temporary path to write to, and move it to `path` once the block succeeds.

    Missing folders are created. The temporary file is hidden, in the same folder, and has
    the suffix of `path`. Its name contains the host, the process and a random part, so
    that writers on a shared disk do not collide. After the block the file and its name are
    on the disk, with the permissions of the umask. If the block fails, the old file is
    unchanged and the temporary one is removed.

    Args:
        path: The file to write.
        synced: Whether to wait for the disk, some milliseconds. Without, the file is whole
            or absent for all processes, but may be lost or cut in a power failure until
            the system has written it.

    Raises:
        ArgumentError: The path cannot be written; the text is the system's.
        StoreError: The disk is full or failed.
        OSError: The block could not read another file.

    Example:
        >>> with whole_file(Path("notes.txt")) as aside:
        ...     _ = aside.write_text("all of it")
        >>> Path("notes.txt").read_text()
        'all of it'
    """
    # Cut: the stem may be as long as a name can be.
    stem = f".{path.stem[:32]}-{os.uname().nodename}-{os.getpid()}"
    aside = path.with_name(f"{stem}-{os.urandom(16).hex()}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.touch(exist_ok=False)
        mode = aside.stat().st_mode
        yield aside
        with aside.open("rb") as written:
            # Some writers replace the file by one that only its owner may read.
            os.fchmod(written.fileno(), stat.S_IMODE(mode))
            if synced:
                os.fsync(written.fileno())
        aside.replace(path)
        if synced:
            sync_folder(path.parent)
    except HotgridError:
        raise
    except OSError as problem:
        raise_write_error(path, problem, aside)
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to the disk, so that new files survive a power failure.

    Example:
        >>> sync_folder(Path("."))
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as problem:
        if problem.errno != errno.EINVAL:  # some network file systems have no such call
            raise
    finally:
        os.close(descriptor)
