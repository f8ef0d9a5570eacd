"""Checkpoints of a simulation: each rank its part, loadable on any mesh."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import Tensor

from hotgrid.errors import StoreError
from hotgrid.store import Checkpoints, Shard

from ._simulation import Simulation
from ._snapshot import SOLID, expect_identity


class SimulationCheckpoints:
    """A folder of states of one simulation; `every` can call it.

    On a mesh every rank writes its own part, and all ranks make the same calls. What was
    saved on one mesh can be loaded on any other, or without one, bit by bit. See
    `hotgrid.store.Checkpoints` for what is on the disk and what survives.

    Arguments:
        simulation: What is saved.
        folder: Where; all hosts must share it.
        keep_last: How many of the newest are kept; None keeps all.
        keep_every: Steps that are a multiple of this are kept as well.
        notes: Saved with every state, and returned by `load`; any JSON value.

    Example:
        >>> from hotgrid.grid import pde
        >>> sim = Simulation(pde.Heat(), size=(8, 8), compiled=False)
        >>> with SimulationCheckpoints(sim, "run", keep_last=2) as checkpoints:
        ...     sim.every(10, checkpoints)
        ...     speed = sim.run(30)
        >>> checkpoints.steps()
        [20, 30]
        >>> other = Simulation(pde.Heat(), size=(8, 8), compiled=False)
        >>> notes = SimulationCheckpoints(other, "run").load()
        >>> other.step_count, torch.equal(other.state["u"], sim.state["u"])
        (30, True)

    Raises:
        ArgumentError: A number is invalid.
    """

    def __init__(
        self,
        simulation: Simulation,
        folder: str | Path,
        *,
        keep_last: int | None = 3,
        keep_every: int | None = None,
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        ranks = simulation._form.ranks
        # Writing runs in a thread, which must not interfere with exchanges.
        self._group = ranks.beside() if ranks is not None else None
        self.folder = Path(folder)
        self._simulation = simulation
        self._notes = dict(notes or {})
        self._kept: tuple[int, int] | None = None
        self._store = Checkpoints(
            folder, keep_last=keep_last, keep_every=keep_every, group=self._group
        )

    def __call__(self, simulation: Simulation) -> None:
        """Save the present state in the background."""
        self.save(asynchronous=True)

    def save(self, *, asynchronous: bool = False) -> Path:
        """Save the present state under its step count, unless that has just been done.

        Arguments:
            asynchronous: Return as soon as the state is copied; at once if steps
                make new tensors and leave the old ones alone (the form `roll`).

        Returns:
            The folder of the checkpoint.

        Raises:
            StoreError: It, or the asynchronous one before it, cannot be written. Earlier
                checkpoints are unchanged.
            ArgumentError: There is another state of the same step.
        """
        simulation = self._simulation
        now = (simulation.step_count, simulation._edits)
        if now == self._kept:
            self._store.wait()
            return self.folder / f"step-{simulation.step_count:09d}"
        extra: dict[str, Any] = {"simulation": self._identity, "notes": self._notes}
        if simulation.changes:
            extra["changes"] = simulation.changes
        parts = simulation._form.own()
        tensors = {name: self._shard(x) for name, x in parts.items()}
        if simulation._solid is not None:
            extra[SOLID] = True
            tensors[SOLID] = self._shard(self._part_of(simulation._solid, parts))
        path = self._store.save(
            simulation.step_count,
            tensors,
            extra=extra,
            asynchronous=asynchronous,
            copy=not simulation._form.leaves_old,
        )
        self._kept = now
        return path

    def load(self, step: int | None = None) -> dict[str, Any]:
        """Go back to a step, by default the newest that is not damaged.

        A damaged one is skipped with a warning.

        Returns:
            The notes it was saved with.

        Raises:
            StoreError: There is no such checkpoint, or none that is good.
            ArgumentError: It is of another model, grid or type.
        """
        simulation = self._simulation
        # First the identity: an error about shapes would be less clear.
        found = self._store.load(step, ())
        expect_identity(self.folder, _table(found.extra, "simulation"), self._identity)
        own = {name: x.new_empty(x.shape) for name, x in simulation._form.own().items()}
        shards = {name: self._shard(x) for name, x in own.items()}
        solid = None
        if found.extra.get(SOLID):
            size = simulation._form.setting.size
            solid = torch.zeros(size, dtype=torch.bool, device=simulation.device)
            # Whole: every rank knows all solid cells.
            shards[SOLID] = Shard(solid, (0,) * len(size), size)
        loaded = self._store.load(step, shards, early=True)
        expect_identity(self.folder, _table(loaded.extra, "simulation"), self._identity)
        if solid is not None or simulation._solid is not None:
            simulation._set_solid(solid)
        simulation._form.restore(own)
        simulation._resumed_at(loaded.step, _table(loaded.extra, "changes"))
        self._kept = (simulation.step_count, simulation._edits)
        return _table(loaded.extra, "notes")

    def notes(self) -> dict[str, Any] | None:
        """The settings of the newest checkpoint; None if there is none, or no good one."""
        try:
            return _table(self._store.load(None, ()).extra, "notes")
        except StoreError:
            return None

    def steps(self) -> list[int]:
        """The saved steps, oldest first. Each rank reads the folder itself."""
        return self._store.steps()

    def wait(self) -> None:
        """Wait until no save is running in the background; raise what went wrong there.

        Raises:
            StoreError: A state could not be written.
        """
        self._store.wait()

    @cached_property
    def _identity(self) -> dict[str, str]:
        # Only once: it reads every cell of the inputs.
        return self._simulation.identity()

    def _shard(self, x: Tensor) -> Shard:
        form = self._simulation._form
        leading = x.shape[: x.ndim - form.setting.rank]
        offset = (*(0 for _ in leading), *form.offset)
        return Shard(x, offset, (*leading, *form.setting.size))

    def _part_of(self, whole: Tensor, parts: Mapping[str, Tensor]) -> Tensor:
        """The cells of a mask that this rank stores."""
        form = self._simulation._form
        cells = next(iter(parts.values())).shape[-whole.ndim :]
        place = zip(form.offset, cells, strict=True)
        return whole[tuple(slice(start, start + count) for start, count in place)].contiguous()

    def __enter__(self) -> "SimulationCheckpoints":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._store.__exit__(kind, problem, trace)


def _table(extra: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An entry of a checkpoint that another program may have written."""
    found = extra.get(name)
    return found if isinstance(found, dict) else {}
