"""One run from its case: everything is checked first, then it runs, then it writes."""

import contextlib
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hotgrid as hg
from hotgrid.errors import ArgumentError, UnstableError

from ._case import Case

if TYPE_CHECKING:
    from hotgrid import grid

_STEPS = 1000
_STATE = "state.safetensors"


@dataclass(frozen=True)
class Outcome:
    """What came of a run.

    Attributes:
        simulation: As it stands now.
        speed: How fast it was.
        observables: At the end.
        files: What was written.
        copy_bandwidth: Of the device, in bytes a second; None when no step was made.
        spoken: Whether it is for this process to tell of it.
    """

    simulation: "grid.Simulation"
    speed: "grid.Speed"
    observables: dict[str, Any]
    files: list[Path]
    copy_bandwidth: float | None
    spoken: bool = True

    @property
    def share(self) -> float:
        """The share of the copy bandwidth that the steps reached."""
        return self.speed.bytes_per_second / self.copy_bandwidth if self.copy_bandwidth else 0.0

    def plain(self) -> dict[str, Any]:
        """The object of `run --json`."""
        simulation, speed = self.simulation, self.speed
        return {
            "model": type(simulation.model).__name__,
            "size": list(simulation.size),
            "device": str(simulation.device),
            "form": simulation.form,
            "seed": simulation.seed,
            "parameters": simulation.model.parameters,
            "step": simulation.step_count,
            "time": simulation.time,
            "observables": self.observables,
            "speed": {
                "steps": speed.steps,
                "seconds": speed.seconds,
                "startup_seconds": speed.startup_seconds,
                "steps_per_second": speed.steps_per_second,
                "mlups": speed.mlups,
                "gigabytes_per_second": speed.bytes_per_second / 1e9,
                "copy_gigabytes_per_second": (self.copy_bandwidth or 0.0) / 1e9,
                "share_of_copy": self.share,
            },
            "files": [str(path) for path in self.files],
        }


def start_ranks(case: Case) -> bool:
    """Start the ranks of a mesh and wait for them, where nobody has done so yet.

    Raises:
        SystemExit: A rank failed; it has said why.
    """
    if case.mesh is None or hg.cluster.launched():
        return False
    ranks = hg.cluster.Mesh(case.mesh).ranks
    if ranks == 1:
        return False
    code = hg.cluster.launch(ranks, sys.argv[1:])
    if code:
        raise SystemExit(code)
    return True


def perform(case: Case, *, resume: bool) -> Outcome:
    """Run a case to its end and write what it asks for.

    Raises:
        HotgridError: Something is wrong with the case; then nothing has been written.
    """
    simulation = _prepared(case, resume)
    with contextlib.ExitStack() as scratch:
        spoken = hg.cluster.speaks()
        if not spoken:
            # All ranks take part in gathering; what the others would write is dropped.
            folder = Path(scratch.enter_context(tempfile.TemporaryDirectory()))
            case = replace(
                case,
                out=case.out and folder / "out",
                record=case.record and folder / case.record.name,
            )
        return replace(_performed(case, simulation, resume), spoken=spoken)


def _performed(case: Case, simulation: "grid.Simulation", resume: bool) -> Outcome:
    every = case.every or max(1, _steps(case, simulation) // 200)
    film = _film(case, simulation, every)
    if case.out is not None:
        _expect_writable(case.out)
    seen = _observing(case, simulation, every, resume)
    try:
        with film or contextlib.nullcontext():
            speed = _go(case, simulation)
    except UnstableError:
        # What it holds now is the last good state: the way back is not lost.
        if case.out is not None:
            simulation.save(case.out / _STATE)
        raise
    files = [film.path] if film else []
    if case.out is not None:
        files.append(simulation.save(case.out / _STATE))
        if seen:
            seen(simulation)
        files += hg.grid.export(
            simulation, case.out, case.export, view=case.view, observations=seen
        )
    limit = (
        hg.kernels.copy_bandwidth(simulation.device).bytes_per_second if speed.steps else None
    )
    return Outcome(simulation, speed, simulation.observe(), files, limit)


def _prepared(case: Case, resume: bool) -> "grid.Simulation":
    import torch

    model = hg.grid.build_model(hg.grid.find_model(case.model), case.set)
    if resume and case.out is None:
        raise ArgumentError("`--resume` needs `--out DIR`, the folder of the run to go on with")
    if case.out is not None and case.out.exists() and not case.out.is_dir():
        raise ArgumentError(f"`--out {case.out}` is a file; name a folder")
    simulation = hg.grid.Simulation(
        model,
        case.size,
        seed=case.seed,
        device=case.device,
        dtype=getattr(torch, case.dtype),
        storage=getattr(torch, case.storage) if case.storage else None,
        mesh=case.mesh,
        depth=case.depth,
    )
    if case.view is not None:
        simulation.view(case.view)
    hg.grid.check_export(simulation, case.export, case.view)
    if resume and case.out is not None:
        simulation.load(case.out / _STATE)
    return simulation


def _expect_writable(folder: Path) -> None:
    """Make the folder and write into it now, not after the run."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        raise ArgumentError(
            f"cannot write into `--out {folder}`: {problem.strerror}; name another folder"
        ) from None


def _steps(case: Case, simulation: "grid.Simulation") -> int:
    if case.time is not None:
        return round(case.time / simulation.model.time_step)
    return _STEPS if case.steps is None else case.steps


def _film(case: Case, simulation: "grid.Simulation", every: int) -> "grid.Recorder | None":
    if case.record is None:
        return None
    path = case.record
    if case.out is not None and path.parent == Path():
        path = case.out / path
    return hg.grid.Recorder(simulation, path, every, case.view)


def _observing(
    case: Case, simulation: "grid.Simulation", every: int, resume: bool
) -> "grid.Observations | None":
    """Have rows and states written down on the way, as far as the case wants them."""
    if case.out is None:
        return None
    out = case.out
    table = out / "observables.csv"
    seen = None
    if {"csv", "png"} & {*case.export}:
        seen = hg.grid.Observations()
        if resume and table.is_file():
            seen = hg.grid.Observations.load(table, until=simulation.step_count)
        seen(simulation)
        simulation.every(every, seen)
    if case.every is not None:

        def keep(simulation: "grid.Simulation") -> None:
            if seen and "csv" in case.export:
                seen.save(table)
            simulation.save(out / _STATE)

        simulation.every(case.every, keep)
    return seen


def _go(case: Case, simulation: "grid.Simulation") -> "grid.Speed":
    if case.time is not None:
        return simulation.run(time=max(0.0, case.time - simulation.time))
    return simulation.run(max(0, _steps(case, simulation) - simulation.step_count))
