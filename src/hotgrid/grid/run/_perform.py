"""One run from its case: everything is checked first, then it runs, then it writes."""

import contextlib
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import torch

from hotgrid import cluster, kernels, store
from hotgrid.config import Case, current, logger
from hotgrid.errors import ArgumentError, CommunicationError, HotgridError, UnstableError
from hotgrid.grid.forms import split_start
from hotgrid.grid.forms.cut import job_of, planned_depth
from hotgrid.grid.model import Model, build_model
from hotgrid.grid.output import (
    Observations,
    Recorder,
    TerminalPicture,
    VtkSeries,
    check_export,
    export,
)

from ._catalogue import find_model
from ._kept_run import KeptRun, film_path, formats_at_end, has_series
from ._outcome import RunOutcome
from ._simulation import Simulation
from ._speed import Speed

Result = TypeVar("Result")
_STEPS = 1000
_RESTARTS = 3
_MOST_TRACED = 5000
_WORTH_MEASURING = 5.0
_TABLE = "observables.csv"


@dataclass(frozen=True)
class _Run:
    """The parts of a run, once everything was checked."""

    case: Case
    simulation: Simulation
    ranks: cluster.Communicator
    kept: KeptRun | None
    stop: cluster.StopRequest


@dataclass(frozen=True)
class _Seen:
    """Writes observations and series along the way."""

    rows: Observations | None = None
    series: VtkSeries | None = None

    def __call__(self, simulation: Simulation) -> None:
        for each in (self.rows, self.series):
            if each is not None:
                each(simulation)


def start_ranks(case: Case, arguments: Sequence[str], *, resume: bool) -> bool:
    """Start the ranks of a mesh and wait for them, unless they are already started.

    Raises:
        HotgridError: Something is wrong with the case; no rank has been started.
        SystemExit: A rank failed; it has printed why.
    """
    if case.mesh is None or cluster.launched():
        return False
    ranks = cluster.Mesh(case.mesh).ranks
    if ranks == 1:
        return False
    # Better reported here once than by every rank.
    _expect_device(case.device)
    _planned_depth(case, "cpu", resume)
    kept = case.out is not None and case.checkpoint_period is not None
    restarts = (_RESTARTS if kept else 0) if case.restarts is None else case.restarts
    with contextlib.ExitStack() as held:
        descriptors: tuple[int, ...] = ()
        if case.out is not None:
            # Held from here on: no other run can come between two starts of the ranks.
            folder = held.enter_context(store.RunFolder(case.out))
            descriptors = held.enter_context(folder.shared())
        code = cluster.launch(ranks, arguments, restarts=restarts, descriptors=descriptors)
    if code:
        raise SystemExit(code)
    return True


def _expect_device(name: str | None) -> None:
    """Refuse a device that is not here, without putting anything on one that is."""
    try:
        kind = torch.device(name or "cpu").type
    except RuntimeError as problem:
        raise ArgumentError(
            f"the device {name!r} cannot be used here: {str(problem).splitlines()[0]}"
        ) from None
    if kind == "cuda" and not torch.cuda.is_available():
        raise ArgumentError(f"the device {name!r} cannot be used here: torch sees no GPU")


def perform(case: Case, *, resume: bool, watch: bool = False) -> RunOutcome:
    """Run a case to its end, or until it is stopped, and write its output.

    Arguments:
        case: What is run.
        resume: Whether to continue from the newest checkpoint.
        watch: Whether to draw the run in the terminal.

    Raises:
        HotgridError: Something is wrong with the case; then nothing has been written.
    """
    with contextlib.ExitStack() as opened:
        stop = cluster.StopRequest(heeded=case.out is not None)
        # Ranks that are not connected yet have nothing to save, and end on SIGTERM.
        meeting = cluster.launched()
        if not meeting:
            opened.enter_context(stop)
        ranks = _ranks(case)
        if meeting:
            opened.enter_context(stop)
        case = _with_depth(case, ranks, resume)
        simulation = _said_once(ranks, lambda: _prepared(case, ranks, resume))
        kept = None
        if case.out is not None:
            kept = KeptRun(case, case.out, simulation, ranks, resume)
            with _first_speaks(ranks):
                opened.enter_context(kept)
        if ranks.rank:
            case = _scratch(case, opened)
        return _performed(_Run(case, simulation, ranks, kept, stop), watch)


def _scratch(case: Case, opened: contextlib.ExitStack) -> Case:
    """The case of a rank that takes part in gathering, and whose files are dropped."""
    if case.out is None:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
    else:
        # In the folder of the run, whose next start removes what a killed rank has left.
        folder = case.out / f".scratch-{uuid.uuid4().hex}"
        opened.callback(shutil.rmtree, folder, ignore_errors=True)
    return replace(
        case,
        out=case.out and folder / "out",
        record=case.record and folder / case.record.name,
    )


def _ranks(case: Case) -> cluster.Communicator:
    if case.mesh is None:
        if cluster.launched():
            raise ArgumentError(
                "several ranks were started, and each would make the same run: use "
                "`--mesh`, such as `--mesh 2x2`, to split the grid over them"
            )
        return cluster.SingleRank()
    return cluster.world(case.device or ("cuda" if torch.cuda.is_available() else "cpu"))


def _with_depth(case: Case, ranks: cluster.Communicator, resume: bool) -> Case:
    """The case with a depth that all ranks have agreed upon."""
    if case.mesh is None or ranks.size == 1:
        return case
    plan = partial(_planned_depth, case, ranks.device, resume)
    return replace(case, depth=ranks.gather_json(_said_once(ranks, plan))[0])


def _planned_depth(case: Case, device: "torch.device | str", resume: bool) -> int:
    """The requested depth, or the best; and whether the mesh fits the grid."""
    model = _model(case, resume)
    kept = getattr(torch, case.storage or case.dtype)
    job = job_of(model, case.size or model.size, kept)
    wanted = case.depth or current().cluster.margin_depth
    depth = None if wanted == "auto" else wanted
    return planned_depth(job, case.mesh or "1", device, depth)


def _said_once(ranks: cluster.Communicator, work: Callable[[], Result]) -> Result:
    """Run a function that must succeed on every rank; if one fails, only rank 0 reports it."""
    with _first_speaks(ranks):
        return cluster.all_or_raise(ranks, work)


@contextlib.contextmanager
def _first_speaks(ranks: cluster.Communicator) -> Iterator[None]:
    """If all ranks raise the same, only rank 0 reports it."""
    try:
        yield
    except CommunicationError:
        raise
    except HotgridError as problem:
        if ranks.rank:
            raise SystemExit(problem.exit_code) from None
        raise


def _model(case: Case, resume: bool) -> Model:
    """The model of a case, whose other options are in order too."""
    values = {name: _at_start(value) for name, value in case.set.items()}
    model = build_model(find_model(case.model), values)
    if resume and case.out is None:
        raise ArgumentError("`--resume` needs `--out DIR`, the folder of the run to continue")
    if case.trace is not None and (case.steps is None or case.steps > _MOST_TRACED):
        raise ArgumentError(
            f"`--trace` keeps every phase of every step in memory: give `--steps`, at most "
            f"{_MOST_TRACED:,} of them"
        )
    if case.out is not None and case.out.exists() and not case.out.is_dir():
        raise ArgumentError(f"`--out {case.out}` is a file; name a folder")
    return model


def prepared(case: Case) -> Simulation:
    """The simulation of a case, ready to run in this process, or on the ranks of its mesh.

    Raises:
        HotgridError: Something is wrong with the case.
    """
    ranks = _ranks(case)
    case = _with_depth(case, ranks, resume=False)
    return _said_once(ranks, lambda: _prepared(case, ranks, resume=False))


def _prepared(case: Case, ranks: cluster.Communicator, resume: bool) -> Simulation:
    """The simulation of a case. Nothing here may wait for other ranks."""
    simulation = Simulation(
        _model(case, resume),
        case.size,
        seed=case.seed,
        device=case.device,
        dtype=getattr(torch, case.dtype),
        storage=getattr(torch, case.storage) if case.storage else None,
        mesh=case.mesh,
        depth=case.depth,
        overlap=case.overlap,
        communicator=ranks if case.mesh else None,
    )
    for name, value in case.set.items():
        if isinstance(value, str) and "->" in value:
            simulation.schedule(**{name: split_start(value)[1]})
    check_export(simulation, case.export, case.view)
    return simulation


def _at_start(value: object) -> object:
    """The value that an option begins with, of `100 -> 400 @ 2000` the first."""
    return split_start(value)[0] if isinstance(value, str) and "->" in value else value


def _performed(run: _Run, watch: bool) -> RunOutcome:
    case, simulation, ranks = run.case, run.simulation, run.ranks
    every = case.every or max(1, _steps(case, simulation) // 200)
    film = _film(case, simulation, every)
    watched = _watched(run) if watch else None
    if run.kept is not None:
        with _first_speaks(ranks):
            run.kept.begin()
    seen = _observing(run, every)
    try:
        with (
            film or contextlib.nullcontext(),
            watched or contextlib.nullcontext(),
            _traced(run),
        ):
            speed = _go(run, progress=False if watched else None)
    except UnstableError:
        # It now holds the last good state, which is saved.
        if run.kept is not None:
            run.kept.checkpoints.save()
        raise
    except KeyboardInterrupt:
        _keep_what_can_be(run, seen, every)
        raise KeyboardInterrupt(_left(run, film)) from None
    stopped = _unfinished(case, simulation)
    files = [film.path] if film else []
    files += _written(run, seen, stopped)
    observables = simulation.observe()
    limit = _copy_bandwidth(run, speed, stopped)
    return RunOutcome(simulation, speed, observables, files, limit, ranks.rank == 0, stopped)


def _copy_bandwidth(run: _Run, speed: Speed, stopped: bool) -> float | None:
    """The copy bandwidth: as stored, or measured now if that is worth the time."""
    if not speed.steps or run.ranks.rank:
        return None
    device = run.simulation.device
    found = kernels.kept_bandwidth(device)
    # It takes time and memory: too much for a short run, or one that must end.
    if found is None and not stopped and speed.seconds >= _WORTH_MEASURING:
        found = kernels.copy_bandwidth(device)
    return found and found.bytes_per_second


def _keep_what_can_be(run: _Run, seen: _Seen, every: int) -> None:
    """Save where an interrupt left a run; several ranks were not left in the same step."""
    if run.ranks.size > 1:
        return
    # After a second interrupt, do not wait.
    with contextlib.suppress(KeyboardInterrupt):
        if run.simulation.step_count % every == 0:
            seen(run.simulation)
        _written(run, seen, stopped=True)


def _left(run: _Run, film: Recorder | None) -> str:
    """What an interrupted run saved, and how to continue; empty if another rank reports it."""
    case, simulation = run.case, run.simulation
    if run.ranks.rank:
        return ""
    now, goal = simulation.step_count, _steps(case, simulation)
    steps = run.kept.checkpoints.steps() if run.kept is not None else []
    kept = (
        "no state is saved: with `--out DIR` it would be, and `--resume` would continue from it"
    )
    if run.kept is not None and steps:
        kept = (
            f"the state of step {steps[-1]:,} is kept in `{run.kept.checkpoints.folder}`, and "
            "the same command with `--resume` continues from it"
        )
    filmed = f"; the film so far is `{film.path}`" if film else ""
    return f"interrupted at step {now:,} of {goal:,}; {kept}{filmed}"


def _written(run: _Run, seen: _Seen, stopped: bool) -> list[Path]:
    """Write the output of a case; for a run that continues later, only what it needs."""
    case, simulation = run.case, run.simulation
    if case.out is None or run.kept is None:
        return []
    with _first_speaks(run.ranks):
        run.kept.folder.expect_there()
    files = [run.kept.checkpoints.save()]
    if stopped:
        if seen.rows and "csv" in case.export:
            seen.rows.save(case.out / _TABLE)
        return files
    seen(simulation)
    if seen.series:
        files.append(seen.series.path)
    return files + export(
        simulation, case.out, formats_at_end(case), view=case.view, observations=seen.rows
    )


def _steps(case: Case, simulation: Simulation) -> int:
    if case.time is not None:
        return simulation._clock().steps_in(case.time)
    return _STEPS if case.steps is None else case.steps


def _unfinished(case: Case, simulation: Simulation) -> bool:
    """Whether steps are left to make."""
    if case.time is not None:
        return simulation.time < case.time - 1e-6 * simulation.model.time_step
    return simulation.step_count < _steps(case, simulation)


def _film(case: Case, simulation: Simulation, every: int) -> Recorder | None:
    path = film_path(case)
    return Recorder(simulation, path, every, case.view) if path else None


def _watched(run: _Run) -> TerminalPicture | None:
    """The picture in the terminal of the first rank, if it has one; the same on all ranks."""
    if run.ranks.gather_json(TerminalPicture.possible())[0]:
        goal = _steps(run.case, run.simulation)
        return TerminalPicture(run.simulation, run.case.view, goal)
    if run.ranks.rank == 0:
        logger("run").warning(
            "`--watch` needs a terminal, which stderr is not; the run continues without it"
        )
    return None


def _observing(run: _Run, every: int) -> _Seen:
    """Have rows and checkpoints written down on the way, as far as the case wants them."""
    case, simulation, kept = run.case, run.simulation, run.kept
    if case.out is None or kept is None:
        return _Seen()
    table = case.out / _TABLE
    rows = series = None
    if {"csv", "png"} & {*case.export}:
        read = partial(Observations.load, table, until=simulation.step_count)
        rows = Observations(_earlier(run, table, lambda: read().rows))
        if not rows.rows:
            rows(simulation)
        simulation.every(every, rows)
    if has_series(case):
        series = _series(run, case.out, every)
    seen = _Seen(rows, series)
    if case.checkpoint_period is not None:

        def keep(simulation: Simulation) -> None:
            with _first_speaks(run.ranks):
                kept.folder.expect_there()
            # First the rows: those of a checkpoint are never missing.
            if rows and "csv" in case.export:
                rows.save(table)
            kept.checkpoints.save(asynchronous=True)

        simulation.every(case.checkpoint_period, keep)
    return seen


def _series(run: _Run, out: Path, every: int) -> VtkSeries:
    """Have VTK files written on the way, after those that are there up to here."""
    read = partial(VtkSeries.load, out, until=run.simulation.step_count)
    series = VtkSeries(out)
    series.steps += _earlier(run, series.path, read)

    def write(simulation: Simulation) -> None:
        if run.kept is not None:
            with _first_speaks(run.ranks):
                run.kept.folder.expect_there()
        series(simulation)

    if not series.steps:
        write(run.simulation)
    run.simulation.every(every, write)
    return series


def _earlier(run: _Run, path: Path, read: Callable[[], list[Result]]) -> list[Result]:
    """The files that a resumed run wrote so far, as the first rank finds them, on all ranks."""

    def found() -> list[Result]:
        return [] if run.ranks.rank or not path.is_file() else read()

    if run.kept is None or not run.kept.resumed:
        return []
    return run.ranks.gather_json(_said_once(run.ranks, found))[0]


def _traced(run: _Run) -> "contextlib.AbstractContextManager[None]":
    if run.case.trace is None:
        return contextlib.nullcontext()
    return cluster.trace(run.case.trace, run.ranks)


def _go(run: _Run, progress: bool | None) -> Speed:
    case, simulation = run.case, run.simulation
    stop = run.stop if run.kept is not None else None
    if stop is not None and any(run.ranks.gather_json(stop())):
        # Stopped before the first step; the initial state is saved.
        return simulation.run(0)
    if case.time is not None:
        left = max(0.0, case.time - simulation.time)
        return simulation.run(time=left, stop=stop, progress=progress)
    left = max(0, _steps(case, simulation) - simulation.step_count)
    return simulation.run(left, stop=stop, progress=progress)
