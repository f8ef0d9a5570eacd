"""A run in its folder: started, resumed, or continued after a restart."""

import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from types import TracebackType
from typing import Any

from hotgrid import cluster, store
from hotgrid.config import CASE_PATTERNS, Case, logger
from hotgrid.errors import CommunicationError, StoreError
from hotgrid.grid.output import VtkSeries, export_names

from ._checkpoints import SimulationCheckpoints
from ._simulation import Simulation

_KEPT = 3
# What runs left in their folder before it had a `run.toml`.
FORMER = (
    "checkpoints.old",
    "fields.npz",
    "observables.csv",
    "*.png",
    "views.vti",
    "*.mp4",
    "*.gif",
)


class KeptRun:
    """A run in `--out`, with its checkpoints.

    A run continues from its newest checkpoint on request, and when a launcher has
    restarted it. As a context it holds the lock of the folder, and waits at the end for
    checkpoints that are still being written. Nothing is moved or written before `begin`.

    Arguments:
        case: What is run.
        out: The folder of the run.
        simulation: It is set to the newest checkpoint if the run continues.
        ranks: All ranks of the run.
        resume: Whether to continue.

    Attributes:
        folder: The folder of the run.
        checkpoints: The checkpoints; there after `begin`.
        resumed: Whether the simulation was set to one.
    """

    def __init__(
        self,
        case: Case,
        out: Path,
        simulation: Simulation,
        ranks: cluster.Communicator,
        resume: bool,
    ) -> None:
        self._case, self._simulation, self._ranks = case, simulation, ranks
        self._resume = resume
        self.folder = store.RunFolder(out, group=ranks, former=FORMER)
        self.resumed = False
        self._end = contextlib.ExitStack()

    def begin(self) -> None:
        """Make the folder that of this run; go back to its newest checkpoint, if it has one.

        Raises:
            StoreError: There is nothing to resume, or it belongs to another run.
            ArgumentError: The run to resume has other settings.
        """
        case, simulation = self._case, self._simulation
        # All ranks pass the same; all but the first only need to agree.
        asked = {**simulation.identity(), "seed": str(case.seed), "start": _start(case)}
        if simulation.changes:
            changes = [f"{name}={text}" for name, text in sorted(simulation.changes.items())]
            asked["changes"] = ", ".join(changes)
        self.folder.begin(
            asked,
            files=_files(case, self.folder.path, simulation),
            options=_options(case),
            job=cluster.job(),
            resume=self._resume,
        )
        self.checkpoints = SimulationCheckpoints(
            simulation,
            self.folder.checkpoints,
            keep_last=case.keep or _KEPT,
            keep_every=case.keep_every,
            notes={"run": self.folder.id, "identity": self.folder.identity},
        )
        self._end.push(self._wait)
        if self.folder.goes_on:
            self._go_back()

    def _go_back(self) -> None:
        there = self._ranks.gather_json(bool(self.checkpoints.steps()))[0]
        # A run that was stopped before its first checkpoint starts again. So does a restarted
        # one whose checkpoints are all damaged; with `--resume` that is an error instead.
        notes = self.checkpoints.notes() if there else None
        if notes is None and not (there and self._resume):
            self._tell("there is no checkpoint; the run starts again")
            return
        if notes is not None and not self._owns(notes):
            raise StoreError(
                f"`{self.folder.checkpoints}` contains checkpoints of another run, with "
                "other settings: move them out of the folder, or leave out `--resume`"
            )
        self.checkpoints.load()
        self.folder.adopt()
        self.resumed = True
        if not self._resume:
            self._tell(f"continues from step {self._simulation.step_count}")

    def _owns(self, notes: Mapping[str, Any]) -> bool:
        """Whether a checkpoint is of this run."""
        if not self._resume:
            return notes.get("run") == self.folder.id
        # Checkpoints of `SimulationCheckpoints` or of an earlier hotgrid have no id.
        return notes.get("identity") in (self.folder.identity, None)

    def _tell(self, text: str) -> None:
        if self._ranks.rank == 0:
            logger("run").warning("%s", text)

    def __enter__(self) -> "KeptRun":
        self._end.enter_context(self.folder)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end.__exit__(kind, problem, trace)

    def _wait(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Do not wait for work that waits for a lost rank.
        if not isinstance(problem, CommunicationError):
            self.checkpoints.__exit__(kind, problem, trace)


def film_path(case: Case) -> Path | None:
    """The path of the film: a bare name goes into `--out`."""
    if case.record is None or case.out is None or case.record.parent != Path():
        return case.record
    return case.out / case.record


def has_series(case: Case) -> bool:
    """Whether VTK files are written on the way."""
    return "vti" in case.export and case.every is not None


def formats_at_end(case: Case) -> list[str]:
    """The exports of the last state alone."""
    return [each for each in case.export if not (each == "vti" and has_series(case))]


def _files(case: Case, folder: Path, simulation: Simulation) -> list[str]:
    """The files that the run writes into its folder."""
    names = export_names(simulation, formats_at_end(case), case.view)
    if has_series(case):
        names += VtkSeries.names
    for path in filter(None, (film_path(case), case.trace)):
        with contextlib.suppress(ValueError):
            names.append(path.resolve().relative_to(folder.resolve()).as_posix())
    return names


def _start(case: Case) -> str:
    """The files of cells that determine the initial state besides model and seed."""
    found = hashlib.blake2b(digest_size=16)
    for name, value in sorted(case.set.items()):
        if (
            isinstance(value, str)
            and Path(value).suffix in CASE_PATTERNS
            and Path(value).is_file()
        ):
            found.update(name.encode() + Path(value).read_bytes())
    return found.hexdigest()


def _options(case: Case) -> dict[str, Any]:
    """The options as they were understood, for `run.toml`."""
    values = {each.name: getattr(case, each.name) for each in fields(case)}
    return {
        name: dict(value) if name == "set" else value
        for name, value in values.items()
        if value is not None
    }
