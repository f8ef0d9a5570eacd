"""The folders of checkpoints: one per step, and hidden ones for unfinished saves."""

import contextlib
import fcntl
import os
import re
import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path

from hotgrid.config import logger
from hotgrid.errors import StoreError

_STEP = re.compile(r"step-([0-9]{9,18})")
_HIDDEN = re.compile(r"\.(?:saving|removing)-step-[0-9]+-[0-9a-f]{32}")


def step_folder(folder: Path, step: int) -> Path:
    """The folder of one step."""
    return folder / f"step-{step:09d}"


def steps_in(folder: Path) -> list[int]:
    """The steps that have a folder, in order."""
    try:
        names = [entry.name for entry in os.scandir(folder) if entry.is_dir()]
    except FileNotFoundError:
        return []
    except OSError as problem:
        raise StoreError(f"cannot read `{folder}`: {problem.strerror}") from problem
    steps = [int(found[1]) for name in names if (found := _STEP.fullmatch(name))]
    return sorted(step for step in steps if step_folder(folder, step).name in names)


class Aside:
    """A hidden folder to write a checkpoint to, locked as long as its writer runs.

    The lock is released when the process ends, however it ends. So the next one can
    distinguish leftovers from what another process is writing.
    """

    def __init__(self, folder: Path, step: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = _hidden(folder, "saving", step)
        self.path.mkdir()
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        with contextlib.suppress(OSError):  # not every network file system can
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        """Remove the folder if it still exists, and release the lock."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def hide_step(folder: Path, step: int) -> Path | None:
    """Hide a checkpoint, so that it is never seen half removed."""
    hidden = _hidden(folder, "removing", step)
    try:
        return step_folder(folder, step).rename(hidden)
    except OSError as problem:
        logger("store").warning("step %d in `%s` cannot be removed: %s", step, folder, problem)
        return None


def remove_hidden(paths: Iterable[Path]) -> None:
    """Remove what was hidden. It may take as long as writing it did."""
    for path in paths:
        try:
            if path.is_symlink():
                path.unlink()
            else:
                shutil.rmtree(path)
        except OSError as problem:
            logger("store").warning("`%s` cannot be removed: %s", path, problem)


def remove_leftovers(folder: Path) -> None:
    """Remove what dead processes have left half written or half removed."""
    with contextlib.suppress(OSError):
        hidden = [Path(e.path) for e in os.scandir(folder) if _HIDDEN.fullmatch(e.name)]
        for path in hidden:
            if not _locked(path):
                shutil.rmtree(path, ignore_errors=True)


def _hidden(folder: Path, purpose: str, step: int) -> Path:
    return folder / f".{purpose}-{step_folder(folder, step).name}-{uuid.uuid4().hex}"


def _locked(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False
