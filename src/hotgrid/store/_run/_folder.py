"""The folder of a run: one run per folder, never mixed and never lost."""

import contextlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hotgrid.config import logger
from hotgrid.errors import StoreError
from hotgrid.files import sync_folder
from hotgrid.store._group import Group, OneProcess, all_or_raise
from hotgrid.store._places import remove_leftovers, steps_in

from ._lock import LOCK, RunLock, holds, inherited_lock
from ._record import RECORD, RunRecord, read_record

_CHECKPOINTS = "checkpoints"
_EARLIER = re.compile(r"earlier-([0-9]+)")
# Where an earlier run is collected until it is complete; then it gets its number.
_GATHERED = ".moving-aside"
# Temporary files of `whole_file` whose process was killed, and scratch folders.
_LEFT_OVER = re.compile(r"\..+-[0-9a-f]{32}(\.[A-Za-z0-9]+)?")


class RunFolder:
    """A folder that holds one run: `run.toml`, `checkpoints/` and its other files.

    As a context it is locked, so that two live runs cannot share it. `begin` makes it the
    folder of this run. A previous run is moved aside, into `earlier-1`,
    `earlier-2` and so on inside the folder, or continued on request. Nothing is
    overwritten or deleted. With several ranks, all of them make the same calls, and rank 0
    does the work.

    Args:
        folder: The folder; created if needed.
        group: The ranks, as for `Checkpoints`. A single process by default.
        former: Patterns of what runs without a `run.toml` have left beside `checkpoints`.

    Attributes:
        path: The folder.
        checkpoints: Where its checkpoints go.
        id: Unique; known after `begin`. Checkpoints should carry it.
        identity: A hash of `asked`; known after `begin`.
        goes_on: Whether the run had begun before; known after `begin`.

    Raises:
        StoreError: Another process holds the lock.
        ArgumentError: The folder cannot be written.

    Example:
        >>> for seed in ("1", "2"):
        ...     with RunFolder("out") as run:
        ...         run.begin({"model": "heat", "seed": seed}, files=["table.csv"])
        ...         _ = (run.path / "table.csv").write_text(f"seed {seed}")
        >>> sorted(path.name for path in Path("out").iterdir())
        ['earlier-1', 'run.toml', 'table.csv']
        >>> Path("out/earlier-1/table.csv").read_text()
        'seed 1'
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        group: Group | None = None,
        former: Iterable[str] = (),
    ) -> None:
        self.path = Path(folder)
        self.checkpoints = self.path / _CHECKPOINTS
        self.id = self.identity = ""
        self.goes_on = False
        self._group: Group = OneProcess() if group is None else group
        self._former = tuple(former)
        self._lock: RunLock | None = None
        self._adopted: RunRecord | None = None
        self._descriptor = -1

    def __enter__(self) -> Self:
        inherited = inherited_lock(self.path)
        all_or_raise(self._group, lambda: self._take(inherited))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        lock, self._lock = self._lock, None
        if lock:
            lock.release()

    @contextlib.contextmanager
    def shared(self) -> Iterator[tuple[int, ...]]:
        """Let ranks that are started inside hold the lock too.

        Gives the descriptors that they must inherit. The folder stays locked until all of
        them have ended, even if this process is killed.
        """
        if self._lock is None:
            yield ()
            return
        with self._lock.shared() as descriptor:
            yield (descriptor,)

    def begin(
        self,
        asked: Mapping[str, str],
        *,
        files: Iterable[str] = (),
        options: Mapping[str, Any] | None = None,
        job: str | None = None,
        resume: bool = False,
    ) -> None:
        """Make this the folder of a run, and write `run.toml`.

        A run continues if `resume` is true, or if a launcher has restarted its job. Otherwise
        it is a new one, and the previous one is moved aside.

        Args:
            asked: Everything that determines the results: model, sizes, parameters, seed, data.
            files: What the run writes into the folder, as paths in it.
            options: The other options of the command, for the record.
            job: The launcher's name of its job; the same after a restart, and new for
                every launch.
            resume: Continue the run in the folder.

        Raises:
            ArgumentError: The run to resume has other settings; the message says
                what differs.
            StoreError: There is no run to resume, or the previous one cannot be moved.
        """
        record = RunRecord(dict(asked), sorted(set(files)), dict(options or {}), job)
        mine = all_or_raise(self._group, lambda: self._begun(record, resume))
        self.identity = record.identity
        self.id, self.goes_on = self._group.gather_json(mine)[0]

    def adopt(self) -> None:
        """Write the `run.toml` that a run to resume lacks, after its checkpoints were loaded.

        Such a run was made by an earlier hotgrid or by a script. Before its checkpoints are
        checked, its settings are unknown. All ranks call it.
        """
        record, self._adopted = self._adopted, None
        all_or_raise(self._group, lambda: record and record.write(self.path))

    def expect_there(self) -> None:
        """Raise if the folder was removed or replaced since it was locked. All ranks call it.

        Raises:
            StoreError: The folder was removed or replaced.
        """
        all_or_raise(self._group, self._expect_there)

    def _take(self, inherited: int | None) -> None:
        if self._group.rank:
            return
        if inherited is None:
            self._lock = RunLock(self.path)
            inherited = self._lock.descriptor
        self._descriptor = inherited
        self._remove_leftovers()

    def _remove_leftovers(self) -> None:
        """Remove half-written files: their writer is gone, as it does not hold the lock."""
        remove_leftovers(self.checkpoints)
        for path in self.path.iterdir():
            if _LEFT_OVER.fullmatch(path.name):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)

    def _expect_there(self) -> None:
        if self._group.rank == 0 and not holds(self.path / LOCK, self._descriptor):
            raise StoreError(
                f"`{self.path}` was removed or replaced while the run was writing into it: "
                "nothing more is written, and the run ends"
            )

    def _begun(self, record: RunRecord, resume: bool) -> list[Any] | None:
        if self._group.rank:
            return None
        if resume:
            self._take_back()
            found = self._found_to_resume()
            if found is not None:
                found.expect_same(self.path, record)
                # Restarted ranks resume again, as a part of the same command.
                again = record.job is not None and found.job == record.job
                record = found if again else found.resumed_by(record)
                record.write(self.path)
            else:
                self._adopted = record
            return [record.id, True]
        found = self._found()
        same = found and (found.job, found.identity) == (record.job, record.identity)
        if found and same and record.job is not None:
            return [found.id, True]
        self._move_aside(found, record)
        record.write(self.path)
        return [record.id, False]

    def _found(self) -> RunRecord | None:
        try:
            return read_record(self.path)
        except StoreError as problem:
            logger("store").warning("%s", problem)
            return None

    def _found_to_resume(self) -> RunRecord | None:
        found = read_record(self.path)
        if found is None and not steps_in(self.checkpoints):
            raise StoreError(
                f"there is no checkpoint in `{self.checkpoints}`: there is no run to resume; "
                "begin one without resuming"
            )
        return found

    def _move_aside(self, found: RunRecord | None, record: RunRecord) -> None:
        gathered = self.path / _GATHERED
        # `run.toml` last: until then, an interrupted move still knows what to move.
        names = sorted(self._belonging(found, record), key=lambda name: (name == RECORD, name))
        if not names and not gathered.is_dir():
            return
        try:
            if any(map(os.path.lexists, (gathered / name for name in names))):
                self._number(gathered)
            for name in names:
                (gathered / name).parent.mkdir(parents=True, exist_ok=True)
                (self.path / name).rename(gathered / name)
            aside = self._number(gathered)
            sync_folder(self.path)
        except OSError as problem:
            self._take_back()
            raise StoreError(
                f"cannot move the earlier run in `{self.path}` aside: {problem.strerror}; name "
                "another folder"
            ) from problem
        logger("store").warning(
            "this is a new run; the previous one is now in `%s`. To continue one, resume it: "
            "`--resume`, or `resume=True` in Python",
            aside,
        )

    def _number(self, gathered: Path) -> Path:
        """Give an earlier run the next number."""
        taken = (_EARLIER.fullmatch(path.name) for path in self.path.iterdir())
        number = 1 + max((int(each[1]) for each in taken if each), default=0)
        return gathered.rename(self.path / f"earlier-{number}")

    def _belonging(self, found: RunRecord | None, record: RunRecord) -> Iterator[str]:
        """The files that belong to the previous run, or that the new one will write."""
        names = {RECORD, _CHECKPOINTS, *record.files}
        if found is not None:
            names |= {*found.files}
        elif any((self.path / each).exists() for each in (RECORD, _CHECKPOINTS, _GATHERED)):
            for pattern in self._former:
                names |= {path.name for path in self.path.glob(pattern)}
        return (name for name in names if os.path.lexists(self.path / name))

    def _take_back(self) -> None:
        """Undo a move aside that was not finished."""
        with contextlib.suppress(OSError):
            _merge(self.path / _GATHERED, self.path)


def _merge(source: Path, target: Path) -> None:
    """Move the contents of one folder into another, unless something is in the way."""
    for path in list(source.iterdir()):
        there = target / path.name
        if not os.path.lexists(there):
            path.rename(there)
        elif path.is_dir() and there.is_dir():
            _merge(path, there)
    source.rmdir()
