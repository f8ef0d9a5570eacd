"""A folder of checkpoints: save, load, keep some, survive damage."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from hotgrid.config import logger
from hotgrid.errors import ArgumentError, DamagedError, StoreError

from ._flight import Flight
from ._group import Group, OneProcess, all_or_raise
from ._keeping import Keeping
from ._load import Checkpoint, Reading, check_step
from ._places import hide_step, remove_hidden, step_folder, steps_in
from ._save import Save
from ._staging import Staging

if TYPE_CHECKING:
    from torch import Tensor

    from ._shard import Shard
    from ._wanted import Wanted


class Checkpoints:
    """A folder of checkpoints, one folder for each step, never overwritten.

    A checkpoint is complete or not there, however the process ends. It holds tensors
    (safetensors files, one for each rank) and `extra` (JSON). Nothing in it is code, so
    an untrusted one is safe to open.

    With several ranks, `save` and `load` are called by all of them. Either all succeed or
    all raise.

    Args:
        folder: The folder; created at the first save. Hosts must share it.
        keep_last: How many of the newest are kept; None keeps all.
        keep_every: Steps that are a multiple of this are kept as well.
        keep_best: The name of a number in `extra`; the best checkpoint is kept as well.
        best: Whether the lowest or the highest number is the best.
        group: The ranks, a `Communicator`, or another object with `rank`, `size` and
            `gather_json(value)`, which gives every rank the values of all. A single
            process by default.

    Raises:
        ArgumentError: An argument is invalid.

    Example:
        >>> checkpoints = Checkpoints("run", keep_last=2)
        >>> for step in (100, 200, 300):
        ...     path = checkpoints.save(step, {"u": torch.full((2, 2), step)}, extra={"t": 0.5})
        >>> checkpoints.steps()
        [200, 300]
        >>> loaded = checkpoints.load()
        >>> loaded.step, loaded.tensors["u"][0, 0].item(), loaded.extra
        (300, 300, {'t': 0.5})
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        keep_last: int | None = 3,
        keep_every: int | None = None,
        keep_best: str | None = None,
        best: Literal["lowest", "highest"] = "lowest",
        group: Group | None = None,
    ) -> None:
        self._folder = Path(folder)
        self._keeping = Keeping(keep_last, keep_every, keep_best, best)
        self._group: Group = OneProcess() if group is None else group
        self._staging = Staging()
        self._flight: Flight | None = None
        self._seen = False
        self._told: set[str] = set()

    def save(
        self,
        step: int,
        tensors: Mapping[str, Tensor | Shard],
        *,
        extra: Mapping[str, Any] | None = None,
        asynchronous: bool = False,
        copy: bool = True,
    ) -> Path:
        """Save a step, and remove what need not be kept any longer.

        Waits for the previous asynchronous save, if there is one, and raises what went
        wrong there. Old checkpoints are hidden at once and removed by a thread.

        Args:
            step: The number it is saved under, from 0.
            tensors: Tensors by name. A plain tensor is whole and the same on all ranks; a
                `Shard` is this rank's piece.
            extra: Any JSON value; rank 0's is saved.
            asynchronous: Return as soon as the tensors are copied, and write in a
                thread. Copies of tensors on a GPU stay on it until they are written, if
                a tenth of its memory is still free then; else they go to host memory.
            copy: False, when asynchronous, writes from the tensors themselves, without
                a copy: for loops that create new tensors in every step and never write
                into old ones. A change before `wait` is an error, as far as torch
                notices it, and the step is then not saved.

        Returns:
            The folder of the checkpoint; when asynchronous, the folder it will have.

        Raises:
            ArgumentError: The step exists already, or something cannot be saved.
            StoreError: It cannot be written, such as when the disk is full or the folder was
                removed since the last save, or a tensor was changed that is not copied.
                Nothing of it is left, and earlier checkpoints are unchanged.

        Example:
            >>> with Checkpoints("aside") as checkpoints:
            ...     checkpoints.save(1, {"u": torch.ones(3)}, asynchronous=True).name
            'step-000000001'
        """
        self.wait()
        extra = {} if extra is None else extra
        all_or_raise(self._group, lambda: self._check(step, extra))
        save = Save(self._folder, self._group, step, tensors, extra)
        self._seen = True
        if asynchronous:
            save.stage(self._staging, copy=copy)
            work = lambda: remove_hidden(self._finish(save))
            self._flight = Flight(work, f"step {step} was not saved")
        else:
            hidden = self._finish(save)
            if hidden:
                self._flight = Flight(lambda: remove_hidden(hidden), "nothing was removed")
        return step_folder(self._folder, step)

    def wait(self) -> None:
        """Wait until no save is running in the background; raise what went wrong there.

        Raises:
            StoreError: An asynchronous save could not be written.
        """
        flight, self._flight = self._flight, None
        if flight:
            flight.land()

    def steps(self) -> list[int]:
        """The saved steps, oldest first. Each rank reads the folder itself.

        Raises:
            StoreError: The folder cannot be read.
        """
        return steps_in(self._folder)

    def latest(self) -> int | None:
        """The newest complete step, or None. Each rank reads the folder itself.

        Checks manifests and sizes of files; `load` checks every byte it needs.

        Raises:
            StoreError: The newest is of a version that this hotgrid does not know.
        """
        for step in reversed(self.steps()):
            try:
                check_step(self._folder, step, contents=False)
            except DamagedError as problem:
                self._tell_once(f"step {step} is skipped: {problem}")
            else:
                return step
        return None

    def load(
        self,
        step: int | None = None,
        wanted: Wanted | None = None,
        *,
        verify: bool = True,
        early: bool = False,
    ) -> Checkpoint:
        """Load a step, or the newest that is good.

        The mesh may differ from that of the save: each rank gets the regions it requests,
        from all pieces that overlap them. Only the bytes that are needed are read. All is
        checked before the first tensor that was given is filled, unless `early` is true.

        Args:
            step: Which one. None is the newest; when that is damaged, the one before, and
                so on, each with a warning.
            wanted: None is every tensor, whole. Names select tensors. A dict gives for
                each name what of it: None is all, slices such as `"0:9, 16:32"` a part, a
                tensor or a `Shard` is filled in place.
            verify: Compare checksums of what is read. Without it, sizes and headers still
                are.
            early: Fill given tensors while the rest is still being checked, which reads the
                data once instead of twice. If `load` raises, their contents are undefined.

        Returns:
            The step, its tensors (on the CPU, unless they were given), and its extra.

        Raises:
            DamagedError: The step, or every step, is damaged. Nothing was filled.
            StoreError: There is no such step, or the version of its format is unknown.
            ArgumentError: `wanted` does not match what was saved.

        Example:
            >>> checkpoints = Checkpoints("parts")
            >>> _ = checkpoints.save(1, {"u": torch.arange(12).view(3, 4), "v": torch.ones(2)})
            >>> checkpoints.load(wanted={"u": "1:, 2:4"}).tensors
            {'u': tensor([[ 6,  7],
                    [10, 11]])}
        """
        self.wait()
        if wanted is not None and not isinstance(wanted, str | Mapping):
            wanted = list(wanted)
        problems: list[str] = []
        for candidate in self._candidates(step):
            try:
                return self._load(candidate, wanted, verify, early)
            except DamagedError as problem:
                if step is not None:
                    raise
                problems.append(f"step {candidate}: {problem}")
                if self._group.rank == 0:
                    self._tell_once(f"step {candidate} is skipped: {problem}")
        raise DamagedError(
            f"every checkpoint in `{self._folder}` is damaged; begin a new run, without "
            "resuming\n" + "\n".join(problems)
        )

    def _tell_once(self, text: str) -> None:
        # What is resumed is loaded in several parts.
        if text not in self._told:
            self._told.add(text)
            logger("store").warning("%s", text)

    def _candidates(self, step: int | None) -> list[int]:
        # All ranks use what rank 0 sees: a shared folder may be updated later on others.
        mine = all_or_raise(self._group, lambda: [] if self._group.rank else self.steps())
        there = self._group.gather_json(mine)[0]
        if step is None and there:
            return there[::-1]
        if step is not None and step in there:
            return [step]
        asked = "no checkpoint" if step is None else f"no step {step!r}"
        seen = f"; there are {', '.join(map(str, there))}" if there else ""
        raise StoreError(f"there is {asked} in `{self._folder}`{seen}")

    def _load(self, step: int, wanted: Wanted | None, verify: bool, early: bool) -> Checkpoint:
        read = lambda: Reading(self._folder, step, wanted, verify=verify, early=early)
        reading = all_or_raise(self._group, read)
        self._seen = True
        return all_or_raise(self._group, reading.load)

    def _check(self, step: int, extra: Mapping[str, Any]) -> None:
        if type(step) is not int or not 0 <= step < 10**18:
            raise ArgumentError(f"`step` is {step!r}; expected a whole number from 0")
        if not isinstance(extra, Mapping):
            raise ArgumentError(f"`extra` is a {type(extra).__name__}; expected a dict")
        if self._group.rank == 0:
            self._keeping.score(extra)
            if self._seen and not self._folder.is_dir():
                raise StoreError(
                    f"`{self._folder}` was removed since the last save or load; it is not "
                    "created again, as the earlier checkpoints are gone"
                )

    def _finish(self, save: Save) -> list[Path]:
        """Write a save; hide what is no longer kept, and return the hidden folders."""
        save.finish()
        if self._group.rank != 0:
            return []
        steps = self.steps()
        newer = [step for step in steps if step > save.step]
        if newer:
            logger("store").warning(
                "step %d was saved beside later ones (%s), which `load` takes first",
                save.step,
                ", ".join(map(str, newer)),
            )
        surplus = self._keeping.surplus(steps, save.step, self._score)
        return list(filter(None, (hide_step(self._folder, step) for step in surplus)))

    def _score(self, step: int) -> float:
        try:
            return self._keeping.score(check_step(self._folder, step, contents=False).extra)
        except (StoreError, ArgumentError):
            return math.inf

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        try:
            self.wait()
        except BaseException:
            # What broke the block comes first; the save has logged its own failure.
            if error is None:
                raise

    def __repr__(self) -> str:
        return f"Checkpoints({str(self._folder)!r})"
