"""Timing one function: warm-ups, samples, and one score in seconds."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import torch

from hotgrid.tensors._torch_private import hold_cuda

Clock = Callable[[Callable[[], object]], float]
"""Runs a function once and returns the seconds it took."""

# On a GPU, short calls are timed this many at a time, or for this long.
_QUEUED, _ENOUGH_SECONDS = 16, 2e-3
_FEW = 5
_NORMAL_QUARTILES = 1.349  # from one quartile to the other, in standard deviations
_MATRIX_SIDE = {"cpu": 1024, "cuda": 8192}
_HOPELESS = 5.0  # a run this many times slower than the best so far is not repeated


@dataclass(frozen=True, kw_only=True)
class Timing:
    """The statistics of the samples of one candidate, all in seconds.

    Attributes:
        minimum: The shortest sample.
        median: The middle one.
        mean: The average.
        deviation: How far samples lie apart: between the quartiles, as a share of what
            that is for a standard deviation of 1. A lone outlier does not move it.
        samples: How many there are.

    Example:
        >>> Timing.of([1.0] * 9 + [99.0]).score, Timing.of([1.0] * 6 + [4.0] * 4).score > 1.5
        (1.0, True)
    """

    minimum: float
    median: float
    mean: float
    deviation: float
    samples: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Timing":
        """Sum samples up."""
        return cls(
            minimum=min(seconds),
            median=statistics.median(seconds),
            mean=statistics.fmean(seconds),
            deviation=_between_quartiles(seconds) / _NORMAL_QUARTILES,
            samples=len(seconds),
        )

    @property
    def spread(self) -> float:
        """The deviation as a share of the median."""
        return self.deviation / self.median if self.median else 0.0

    @property
    def score(self) -> float:
        """Mostly the minimum, some of the median, worse for unsteady ones; lower is better."""
        return (0.8 * self.minimum + 0.2 * self.median) * (1 + self.spread)


def _between_quartiles(seconds: Sequence[float]) -> float:
    if len(seconds) < 2:
        return 0.0
    first, _, third = statistics.quantiles(seconds, n=4, method="inclusive")
    return third - first


def clock_of(device: torch.device) -> Clock:
    """Return the clock of a device: events on CUDA, the processor's elsewhere."""
    return _cuda_seconds if device.type == "cuda" else _seconds


def timed(
    run: Callable[[], object],
    clock: Clock,
    *,
    warmups: int,
    samples: int,
    best: float = float("inf"),
) -> Timing:
    """Time a function that has run before, so that it need not compile.

    A function with a warm-up of five times `best` is not run again: that one run is its
    timing.
    """
    for _ in range(warmups):
        seconds = clock(run)
        if seconds > _HOPELESS * best:
            return Timing.of([seconds])
    return Timing.of([clock(run) for _ in range(samples)])


def kernel_seconds(run: Callable[[], object], device: torch.device) -> float | None:
    """Return the seconds that the kernels of a function take on a GPU; None elsewhere.

    The GPU is held up until all calls are in its queue, so that it never waits for one.
    """
    if device.type != "cuda":
        return None
    begin = time.perf_counter()
    for _ in range(_QUEUED):
        run()
    waiting = 2 * (time.perf_counter() - begin)
    found: list[float] = []
    for _ in range(_FEW):
        # A cycle takes at least half a nanosecond.
        hold_cuda(int(waiting * 2e9))
        found.append(_queued_seconds(run, _QUEUED) / _QUEUED)
    return min(found)


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _cuda_seconds(run: Callable[[], object]) -> float:
    """Return the seconds of one call among several that are queued, as they are in use.

    A single short one would be timed with its launch.
    """
    alone = _queued_seconds(run, 1)
    count = min(_QUEUED, int(_ENOUGH_SECONDS / max(alone, 1e-9)))
    return alone if count < 2 else _queued_seconds(run, count) / count


def _queued_seconds(run: Callable[[], object], count: int) -> float:
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(count):
        run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


@cache
def matmul_peak(device: str, dtype: str = "float32") -> float:
    """Return the flops per second of a large matrix product, measured once per process.

    Args:
        device: `cpu` or `cuda:N`.
        dtype: The type of both matrices, such as `float32`.

    Example:
        >>> matmul_peak("cpu") > 1e6
        True
    """
    where = torch.device(device)
    side = _MATRIX_SIDE[where.type]
    a = torch.ones(side, side, dtype=getattr(torch, dtype), device=where)
    product, clock = torch.empty_like(a), clock_of(where)
    return 2 * side**3 / min(clock(lambda: torch.mm(a, a, out=product)) for _ in range(_FEW))
