"""How a plan changes with the number of devices. Plain numbers, no tensors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hotgrid.errors import ArgumentError

from ._estimate import Estimate, Job
from ._machine import Device, Link
from ._plan import best_plan, factorizations


@dataclass(frozen=True)
class ScalingPoint:
    """One point of a scaling curve.

    Attributes:
        devices: How many.
        estimate: The best layout there.
        efficiency: One device's time for its part, divided by the time here.

    Example:
        >>> job = Job.of_radius((4096, 4096), bytes_per_cell=36)
        >>> strong_scaling(job, known_devices()["H200"], Link(50e9, 5e-6), (4,))[0].devices
        4
    """

    devices: int
    estimate: Estimate
    efficiency: float


def strong_scaling(
    job: Job,
    device: Device,
    link: Link,
    counts: Sequence[int],
    *,
    depth: int | None = None,
    overlap: bool = False,
) -> list[ScalingPoint]:
    """Return the same grid on more and more devices, the best layout of each.

    Counts for which the grid cannot be cut are left out.

    Example:
        >>> job = Job.of_radius((4096, 4096), bytes_per_cell=36)
        >>> curve = strong_scaling(job, known_devices()["H200"], Link(50e9, 5e-6), (1, 64))
        >>> curve[0].efficiency, curve[1].efficiency < 0.9
        (1.0, True)
    """
    return [
        ScalingPoint(count, best, best.efficiency)
        for count in counts
        if (best := _best(job, device, link, count, depth, overlap)) is not None
    ]


def weak_scaling(
    job: Job,
    device: Device,
    link: Link,
    counts: Sequence[int],
    block: Sequence[int],
    *,
    depth: int | None = None,
    overlap: bool = False,
) -> list[ScalingPoint]:
    """Return a grid that grows with the devices: each keeps a block of the same size.

    The mesh grows as evenly along all axes as the count allows.

    Example:
        >>> job = Job.of_radius((4096, 4096), bytes_per_cell=36)
        >>> h200, link = known_devices()["H200"], Link(50e9, 5e-6)
        >>> curve = weak_scaling(job, h200, link, (1, 64), block=(8192, 8192))
        >>> curve[1].estimate.size, curve[1].efficiency > 0.9
        ((65536, 65536), True)
    """
    alone = job.step_time(device, math.prod(block))
    points = []
    for count in counts:
        # A long row of devices would need fewer messages, but it is not what people run.
        shape = min(factorizations(count, len(block)), key=lambda each: (max(each), each[::-1]))
        larger = replace(job, size=tuple(n * k for n, k in zip(block, shape, strict=True)))
        best = _best(larger, device, link, count, depth, overlap, shape)
        if best is not None:
            points.append(ScalingPoint(count, best, alone / best.step_time))
    return points


def _best(
    job: Job,
    device: Device,
    link: Link,
    count: int,
    depth: int | None,
    overlap: bool,
    mesh: Sequence[int] | None = None,
) -> Estimate | None:
    try:
        return best_plan(job, device, link, count, mesh=mesh, depth=depth, overlap=overlap).best
    except ArgumentError:
        return None
