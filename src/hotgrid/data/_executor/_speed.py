"""How fast a plan makes batches, and which step takes the time."""

import contextlib
import time
from dataclasses import dataclass

from hotgrid.data._plan import Plan

from ._corrupt import CorruptError
from ._plan_batches import PlanBatches
from ._runner import Runner


@dataclass(frozen=True)
class PlanSpeed:
    """The measurements of `plan_speed`.

    Attributes:
        samples: Samples a second, with all workers.
        megabytes: Megabytes of tensors a second.
        first: Seconds until the first batch, with opening the source.
        steps: Milliseconds that a sample takes in every step, alone on one thread.
        corrupt: How many damaged samples were found.
    """

    samples: float
    megabytes: float
    first: float
    steps: dict[str, float]
    corrupt: int


def plan_speed(
    plan: Plan, size: int = 32, *, workers: int | None = None, seconds: float = 3.0
) -> PlanSpeed:
    """Measure a plan: batches for some seconds, and the steps one by one.

    Args:
        plan: The plan.
        size: Rows of a batch.
        workers: How many threads.
        seconds: How long to measure.
    """
    begin = time.perf_counter()
    with PlanBatches(plan, size, workers=workers, last="short") as batches:
        next(batches)
        first = time.perf_counter() - begin
        done = moved = 0
        begin = time.perf_counter()
        while (now := time.perf_counter() - begin) < seconds or not done:
            batch = next(batches)
            done += len(next(iter(batch.values())))
            moved += sum(x.nbytes for x in batch.values() if not isinstance(x, list))
        batches.close()  # steps are timed alone
        runner = Runner(plan, samples=batches._runner.samples)
        times: dict[str, float] = {}
        count = 0
        ends = time.perf_counter() + seconds / 3
        while time.perf_counter() < ends or not count:
            with contextlib.suppress(CorruptError):
                runner.run(count % len(runner.samples), times=times)
            count += 1
        corrupt = len(batches.corrupt)
    steps = {name: 1e3 * each / count for name, each in times.items()}
    return PlanSpeed(done / now, moved / now / 1e6, first, steps, corrupt)
