"""The best layout of a job over a number of devices. Plain numbers, no tensors."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hotgrid.cluster._mesh import Mesh
from hotgrid.config import current
from hotgrid.errors import ArgumentError

from ._estimate import Estimate, Job, estimate
from ._machine import MOST_DEVICES, Device, Link

DEPTHS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class ClusterPlan:
    """Every layout that was considered, best first: what fits, then what is fastest.

    Attributes:
        job: What is computed.
        device: Each of the devices.
        link: What joins each to the others.
        estimates: All layouts.

    Example:
        >>> job = Job.of_radius((4096, 4096), bytes_per_cell=4)
        >>> plan = best_plan(job, known_devices()["A100"], Link(5e10, 5e-6), 4)
        >>> [str(each.mesh) for each in plan.alternatives(3)]
        ['4x1', '1x4', '2x2']
    """

    job: Job
    device: Device
    link: Link
    estimates: tuple[Estimate, ...]

    @property
    def best(self) -> Estimate:
        """The layout to take."""
        return self.estimates[0]

    def alternatives(self, count: int = 6) -> list[Estimate]:
        """The best depth of each mesh, best mesh first, up to a limit."""
        found: dict[Mesh, Estimate] = {}
        for each in self.estimates:
            found.setdefault(each.mesh, each)
        return list(found.values())[:count]

    @property
    def fewest_devices(self) -> int:
        """Devices below which the job cannot fit, margins not counted."""
        needed = self.job.bytes_stored_per_cell * self.job.cells
        return math.ceil(needed / (current().memory.limit * self.device.memory_bytes))


def best_plan(
    job: Job,
    device: Device,
    link: Link,
    devices: int,
    *,
    mesh: Mesh | str | Sequence[int] | None = None,
    depth: int | None = None,
    overlap: bool = False,
) -> ClusterPlan:
    """Consider every mesh of a number of devices and depths 1, 2, 4, ..., 64.

    Args:
        job: What is computed.
        device: Each of the devices.
        link: What joins each to the others.
        devices: How many.
        mesh: The only mesh to consider.
        depth: The only depth to consider.
        overlap: Hide messages while the interior is computed.

    Raises:
        ArgumentError: No layout is possible; the message says why.

    Example:
        >>> job = Job.of_radius((131072, 131072), bytes_per_cell=36)
        >>> plan = best_plan(job, known_devices()["H200"], Link(450e9, 3e-6), 64)
        >>> plan.best.mesh.ranks, plan.best.efficiency > 0.9
        (64, True)
    """
    if not 1 <= devices <= MOST_DEVICES:
        raise ArgumentError(f"cannot plan for {devices} devices; use 1 to {MOST_DEVICES:,}")
    if mesh is None:
        meshes = [Mesh(shape) for shape in factorizations(devices, len(job.size))]
    else:
        meshes = [Mesh(mesh)]
        meshes[0].check_ranks(devices)
    depths = DEPTHS if depth is None else (depth,)
    found: list[Estimate] = []
    problem: ArgumentError | None = None
    for layout in meshes:
        for steps in depths if layout.ranks > 1 else depths[:1]:
            try:
                found.append(estimate(job, device, link, layout, steps, overlap=overlap))
            except ArgumentError as refusal:
                problem = problem or refusal
                break
    if not found:
        size = "x".join(map(str, job.size))
        raise ArgumentError(
            f"the grid {size} cannot be cut over {devices} devices: {problem}"
        ) from problem
    # Of equals the one with fewer messages, then the one with rows left whole.
    found.sort(
        key=lambda each: (not each.fits, each.step_time, each.messages, each.mesh.shape[::-1])
    )
    return ClusterPlan(job, device, link, tuple(found))


def factorizations(count: int, axes: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to write a count as a product of one factor for each axis."""
    if axes == 1:
        yield (count,)
        return
    small = [n for n in range(1, math.isqrt(count) + 1) if count % n == 0]
    for first in sorted({*small, *(count // n for n in small)}):
        for rest in factorizations(count // first, axes - 1):
            yield (first, *rest)
