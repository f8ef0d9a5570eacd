"""The checkpoints of a run: opened, gone back to, or put aside for a new run."""

import shutil
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import hotgrid as hg
from hotgrid.config import logger
from hotgrid.errors import ArgumentError, CommunicationError

from ._case import Case

if TYPE_CHECKING:
    from hotgrid import cluster, grid

_FOLDER = "checkpoints"
_KEPT = 3


class KeptRun:
    """The checkpoints of a run in `--out`.

    A run goes on from the newest one when it is told to, and when a launcher has started
    the same job again. Nothing is written before `begin`. As a context, it waits at the end
    for what is still being written.

    Arguments:
        case: What is run.
        out: The folder of the run.
        simulation: It is taken back to the newest checkpoint where it should go on.
        ranks: Who runs it.
        resume: Whether it was told to go on.

    Attributes:
        checkpoints: The checkpoints.
        resumed: Whether the simulation was taken back to one.

    Raises:
        StoreError: There is nothing to go on from.
        ArgumentError: What is there belongs to another simulation.
    """

    def __init__(
        self,
        case: Case,
        out: Path,
        simulation: "grid.Simulation",
        ranks: "cluster.Communicator",
        resume: bool,
    ) -> None:
        self._ranks = ranks
        self.checkpoints = hg.grid.SimulationCheckpoints(
            simulation,
            out / _FOLDER,
            keep_last=case.keep or _KEPT,
            keep_every=case.keep_every,
            notes={"job": hg.cluster.job()},
        )
        self.resumed = resume or self._started_again()
        if self.resumed:
            self.checkpoints.load()
        if self.resumed and not resume and ranks.rank == 0:
            logger("run").warning("goes on from step %d", simulation.step_count)

    def begin(self) -> None:
        """Make room for a new run, and keep what an earlier one has left."""
        if not self.resumed:
            hg.cluster.together(self._ranks, self._put_aside)

    def __enter__(self) -> "KeptRun":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # What waits for a lost rank would only be waited for in vain.
        if not isinstance(problem, CommunicationError):
            self.checkpoints.__exit__(kind, problem, trace)

    def _started_again(self) -> bool:
        """Whether there is a checkpoint, and this job or one before a restart made it."""
        notes = self.checkpoints.notes()
        # Where hosts restart their ranks one by one, not every rank knows of it.
        restarted = max(self._ranks.gather_json(hg.cluster.restarts())) > 0
        job = hg.cluster.job()
        return notes is not None and (restarted or (job is not None and notes["job"] == job))

    def _put_aside(self) -> None:
        if self._ranks.rank or not self.checkpoints.steps():
            return
        folder = self.checkpoints.folder
        old = folder.with_name(f"{folder.name}.old")
        try:
            if old.exists():
                shutil.rmtree(old)
            folder.rename(old)
        except OSError as problem:
            raise ArgumentError(
                f"cannot move `{folder}` of an earlier run away: {problem.strerror}; name "
                "another `--out`"
            ) from None
        logger("run").warning(
            "this is a new run; the checkpoints of the one before are now in `%s`, and "
            "`--resume` would have gone on from them",
            old,
        )
