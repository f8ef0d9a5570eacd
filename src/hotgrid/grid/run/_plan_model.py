"""Facts about a model for the planner, and short runs that measure it."""

import contextlib
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from hotgrid import cluster
from hotgrid.cluster.plan import Calibration, Estimate, Job, Link, ModelSpeed, best_plan
from hotgrid.config import Case
from hotgrid.errors import ArgumentError, HotgridError, UnstableError
from hotgrid.grid.forms.cut import job_of
from hotgrid.grid.model import Model, build_model

from ._catalogue import find_model
from ._simulation import Simulation

_SMALL_CELLS = (2**12, 2**14, 2**16)
_LARGE_CELLS = {"cpu": 2**20, "cuda": 2**24}
_MEASURE_SECONDS = 2.0
# A flow on a grid too coarse for it becomes unstable soon.
_MOST_STEPS = {"small": 500, "large": 4000}
_RUNS = 3
# Long enough that the start, when ranks agree often on whether to stop, does not count.
_CHECK_SECONDS = 8.0
_CHECK_LIMIT = 600.0


def model_of(case: Case) -> Model:
    """The model of a case, with its options."""
    return build_model(find_model(case.model), case.set)


def model_key(case: Case) -> str:
    """The name under which the speed of a model is stored."""
    options = [f"{name}={value}" for name, value in sorted(case.set.items())]
    types = case.dtype if case.storage in (None, case.dtype) else f"{case.dtype}/{case.storage}"
    return " ".join([case.model, types, *options])


def job_of_case(case: Case, size: tuple[int, ...], share: float) -> Job:
    """The cost of a model on a grid of any size; nothing of that size is made.

    Raises:
        ArgumentError: The model does not run on such a grid, or cannot be cut.
    """
    model = model_of(case)
    if len(size) not in model.ranks:
        ranks = " or ".join(map(str, model.ranks))
        shown = "x".join(map(str, size))
        raise ArgumentError(
            f"{case.model} runs in {ranks} dims, but `--size {shown}` has {len(size)}"
        )
    model.check(size)
    return job_of(model, size, getattr(torch, case.storage or case.dtype), share)


def scaled_size(size: tuple[int, ...], cells: int) -> tuple[int, ...]:
    """A grid of the same shape within a number of cells, halved or doubled in every axis."""
    while math.prod(size) > cells and min(size) >= 16:
        size = tuple(n // 2 for n in size)
    while math.prod(size) * 2 ** len(size) <= cells:
        size = tuple(n * 2 for n in size)
    return size


def measured_speed(case: Case, found: Calibration) -> ModelSpeed:
    """Run a model for a second on a large grid and on the smallest that it takes."""
    size = case.size or tuple(model_of(case).size)
    most = _LARGE_CELLS[found.kind]
    large, large_bytes = _seconds_per_step(case, scaled_size(size, most), found.kind)
    small, small_bytes = _smallest(case, size, found.kind)
    # Two points of a line: what is left of a step when its bytes are taken away.
    rate = (large_bytes - small_bytes) / max(large - small, 1e-9)
    return ModelSpeed(
        share=rate / found.copy_bandwidth,
        step_overhead=max(0.0, small - small_bytes / rate),
    )


def _smallest(case: Case, size: tuple[int, ...], kind: str) -> tuple[float, int]:
    """A step on a grid so small that its bytes do not count; some models need more cells."""
    for cells in _SMALL_CELLS[:-1]:
        with contextlib.suppress(ArgumentError, UnstableError):
            return _seconds_per_step(case, scaled_size(size, cells), kind)
    return _seconds_per_step(case, scaled_size(size, _SMALL_CELLS[-1]), kind)


def _seconds_per_step(case: Case, size: tuple[int, ...], kind: str) -> tuple[float, int]:
    simulation = Simulation(
        model_of(case),
        size,
        device=kind,
        dtype=getattr(torch, case.dtype),
        storage=getattr(torch, case.storage) if case.storage else None,
    )
    # The first run starts threads and chooses a form.
    trial = [simulation.run(20, progress=False) for _ in range(2)][-1]
    most = _MOST_STEPS["small" if math.prod(size) <= _SMALL_CELLS[-1] else "large"]
    # Few and long runs: taking the state in and checking it costs as much as some steps.
    steps = max(20, min(most, int(_MEASURE_SECONDS * trial.steps_per_second))) // _RUNS
    speeds = [simulation.run(steps, progress=False) for _ in range(_RUNS)]
    # The best, as for the copy bandwidth that it is compared with.
    best = max(speed.steps_per_second for speed in speeds)
    return 1 / best, trial.bytes_per_step


@dataclass(frozen=True)
class Checked:
    """A prediction and the measured value.

    Attributes:
        predicted: By the planner.
        size: The grid.
        measured: Seconds for one step.
        crowded: Whether there were more ranks than cores.
    """

    predicted: Estimate
    size: tuple[int, ...]
    measured: float
    crowded: bool

    @property
    def error(self) -> float:
        """The error of the prediction, relative to the measured value."""
        return self.predicted.step_time / self.measured - 1

    def plain(self) -> dict[str, Any]:
        """The object of `plan --json`."""
        return {
            "ranks": self.predicted.mesh.ranks,
            "mesh": str(self.predicted.mesh),
            "depth": self.predicted.depth,
            "size": list(self.size),
            "predicted_seconds_per_step": self.predicted.step_time,
            "measured_seconds_per_step": self.measured,
            "error": self.error,
            "more_ranks_than_cores": self.crowded,
        }


def checks(case: Case, found: Calibration, size: tuple[int, ...]) -> "Iterator[Checked]":
    """Predict runs of 1, 2 and 4 ranks on this machine, run them, and compare.

    The single rank shows how much the machine has changed since it was measured. Ranks on
    one machine share its memory. More ranks than cores are never predicted to be faster than
    one rank.

    Raises:
        HotgridError: The ranks could not be run.
    """
    speed = found.models.get(model_key(case))
    if found.link is None or speed is None:
        raise ArgumentError(
            "`--check` needs measured speeds of this model and of a link between two ranks "
            "here: add `--calibrate`"
        )
    for ranks in (1, 2, 4):
        if ranks > 2 * found.cores:
            return
        grid = scaled_size(size, _LARGE_CELLS[found.kind])
        job = job_of_case(case, grid, speed.share)
        crowd = max(1.0, ranks / found.cores) if found.kind == "cpu" else 1.0
        link = Link(found.link.bandwidth / crowd, found.link.latency * crowd)
        device = found.device(model_key(case))
        # Ranks that take turns on a core have their overheads one after the other.
        device = replace(device, step_overhead=device.step_overhead * crowd)
        plan = best_plan(
            job,
            device.shared(ranks) if found.kind == "cpu" else device,
            link,
            ranks,
            depth=case.depth,
        )
        measured = _measured_run(case, grid, plan.best, found.kind)
        yield Checked(plan.best, grid, measured, crowd > 1)


def _measured_run(case: Case, size: tuple[int, ...], best: Estimate, kind: str) -> float:
    steps = max(4 * best.depth, min(20000, int(_CHECK_SECONDS / best.step_time)))
    arguments = ["run", case.model, "--size", "x".join(map(str, size)), "--device", kind]
    arguments += ["--mesh", str(best.mesh), "--depth", str(best.depth)]
    arguments += ["--steps", str(steps - steps % best.depth + 1), "--dtype", case.dtype]
    arguments += ["--storage", case.storage] if case.storage else []
    arguments += [part for k, v in case.set.items() for part in ("--set", f"{k}={v}")]
    output = cluster.run_module(
        best.mesh.ranks, "hotgrid", [*arguments, "--json"], _CHECK_LIMIT
    )
    try:
        speed = json.loads(output[output.index("{") :])["speed"]
    except (ValueError, KeyError):
        sys.stderr.write(output)
        raise HotgridError("the ranks printed something other than a result") from None
    return 1 / speed["steps_per_second"]
