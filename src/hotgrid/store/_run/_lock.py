"""The lock of a run folder: two live runs cannot share one."""

import contextlib
import fcntl
import os
import shlex
import socket
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from hotgrid.config import logger
from hotgrid.errors import ArgumentError, DamagedError, StoreError
from hotgrid.files import read_regular

LOCK = ".run.lock"
# The lock goes from a launcher to its ranks as an open file; this variable has its number.
_INHERITED = "RUN_LOCK_OF_HOTGRID"
# Ranks outlive a launcher that was killed by about a second.
_PATIENCE = 3.0
_LOOK_EVERY = 0.05


class RunLock:
    """A lock on a folder, held until `release` or the end of every process that shares it.

    The kernel drops it when the process ends, however it ends, so a lock is never stale.

    Raises:
        StoreError: Another process holds it.
        ArgumentError: The folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK
        self._made: list[Path] = []
        try:
            self._made = _make(folder)
            self.descriptor = self._taken(folder)
            _tell_holder(self.descriptor)
        except StoreError:
            raise
        except OSError as problem:
            self._remove_made()
            raise ArgumentError(
                f"cannot write into `{folder}`: {problem.strerror or problem}; name another "
                "folder"
            ) from None

    def _taken(self, folder: Path) -> int:
        deadline = time.monotonic() + _PATIENCE
        while True:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
            descriptor = os.open(self._path, flags, 0o666)
            try:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise StoreError(f"`{self._path}` is not a regular file; remove it")
                if _locked(descriptor, folder):
                    if holds(self._path, descriptor):
                        return descriptor
                    # The previous holder has removed the file; there may be a new one.
                    os.close(descriptor)
                    continue
                if time.monotonic() > deadline:
                    raise StoreError(
                        f"`{folder}` is in use by {_holder(self._path)}; wait until it has "
                        "ended, or name another folder"
                    )
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
            time.sleep(_LOOK_EVERY)

    @contextlib.contextmanager
    def shared(self) -> Iterator[int]:
        """Let processes that are started inside share the lock; return its descriptor."""
        os.environ[_INHERITED] = str(self.descriptor)
        try:
            yield self.descriptor
        finally:
            del os.environ[_INHERITED]

    def release(self) -> None:
        """Release the lock; remove a folder that was created for it and is empty."""
        if holds(self._path, self.descriptor):
            with contextlib.suppress(OSError):
                self._path.unlink()
            self._remove_made()
        os.close(self.descriptor)

    def _remove_made(self) -> None:
        with contextlib.suppress(OSError):
            for folder in self._made:
                folder.rmdir()


def inherited_lock(folder: Path) -> int | None:
    """The descriptor of the lock if the launcher of this process holds it, else None."""
    try:
        descriptor = int(os.environ.get(_INHERITED, ""))
        if not holds(folder / LOCK, descriptor):
            return None
        os.set_inheritable(descriptor, False)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ValueError, OSError):
        return None
    return descriptor


def holds(path: Path, descriptor: int) -> bool:
    """Whether the open file is still the one at the path."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except OSError:
        return False


def _make(folder: Path) -> list[Path]:
    """Create a folder and its parents; return those that were created, innermost first."""
    lacking = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return lacking


def _locked(descriptor: int, folder: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as problem:
        # Some network file systems have no locks; one run at a time still works.
        logger("store").warning(
            "`%s` cannot be locked (%s): do not start two runs there", folder, problem.strerror
        )
    return True


def _tell_holder(descriptor: int) -> None:
    text = f"process {os.getpid()} on {socket.gethostname()}: {shlex.join(sys.argv)[:500]}\n"
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(errors="backslashreplace"), 0)


def _holder(path: Path) -> str:
    try:
        return read_regular(path, 10_000).decode(errors="replace").strip() or "another process"
    except DamagedError:
        return "another process"
