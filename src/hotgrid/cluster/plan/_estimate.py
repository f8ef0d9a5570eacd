"""How long a step takes on a cluster that you need not have: a small model of `CutForm`.

Every rank computes its block with margins `depth` times, then exchanges margins axis by
axis. So a step costs the bytes of the padded block at memory bandwidth, a fixed overhead,
and a share of one exchange. Plain numbers, no tensors.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hotgrid.cluster._block import per_axis
from hotgrid.cluster._fourier import stages
from hotgrid.cluster._mesh import Mesh
from hotgrid.config import current
from hotgrid.errors import ArgumentError

from ._machine import Device, Link

# Two buffers, the message and the copy of it, are read and written once at each end.
_PACKING_PASSES = 4


@dataclass(frozen=True)
class Job:
    """A job: a grid, and the cost of one cell of it.

    Attributes:
        size: Stored cells along each axis.
        bytes_moved_per_cell: What a step reads and writes for a cell.
        bytes_stored_per_cell: What a device keeps for a cell, all buffers together.
        bytes_sent_per_cell: What an exchange carries for a cell of a margin.
        reach: How far changes travel along each axis in a number of steps.
        periodic: Whether the grid is periodic, for all axes or for each.
        share: The part of a copy's bandwidth that the steps reach.
        updates_per_cell: Cells that share one stored cell, such as 32 bits of a word.
        modes_per_cell: Bytes of modes that the Fourier transforms of a step make or take,
            for a cell; 0 without a phase on the whole grid.
        transforms: How many calls these transforms are.

    Raises:
        ArgumentError: A number is not above 0.

    Example:
        >>> Job.of_radius((4096, 4096), bytes_per_cell=36).bytes_moved_per_cell
        72
    """

    size: tuple[int, ...]
    bytes_moved_per_cell: float
    bytes_stored_per_cell: float
    bytes_sent_per_cell: float
    reach: Callable[[int], Sequence[int]]
    periodic: bool | Sequence[bool] = True
    share: float = 1.0
    updates_per_cell: float = 1.0
    modes_per_cell: float = 0.0
    transforms: int = 0

    def __post_init__(self) -> None:
        costs = (self.bytes_moved_per_cell, self.bytes_stored_per_cell, self.share)
        if not self.size or min(*self.size, *costs, self.updates_per_cell) <= 0:
            raise ArgumentError(f"sizes and bytes of a job must be above 0, got {self}")

    @staticmethod
    def of_radius(size: Sequence[int], bytes_per_cell: int, radius: int = 1) -> "Job":
        """A periodic job from the bytes its fields take per cell, without other inputs."""
        axes = len(size)
        return Job(
            tuple(size),
            2 * bytes_per_cell,
            3 * bytes_per_cell,
            bytes_per_cell,
            lambda depth: (depth * radius,) * axes,
        )

    @property
    def cells(self) -> int:
        """Stored cells of the whole grid."""
        return math.prod(self.size)

    def step_time(self, device: Device, cells: float) -> float:
        """Seconds that a device takes to step a number of cells."""
        # A transform passes over its modes once for each axis, reading and writing.
        passes = 2 * len(self.size) * self.modes_per_cell
        busy = cells * (self.bytes_moved_per_cell / self.share + passes) / device.bandwidth
        return max(busy + device.step_overhead, device.host_time)


@dataclass(frozen=True)
class Estimate:
    """The cost of one layout of a job. Times are seconds for one step.

    Attributes:
        mesh: Devices along each axis.
        depth: Steps between two exchanges.
        overlap: Whether messages travel while the interior is computed.
        size: Stored cells of the whole grid.
        block: Cells of the largest block.
        padded: The same with margins: what is computed.
        memory_bytes: What a device keeps, staging for messages included.
        fits: Whether that is at most the share of its memory that `memory.limit` allows.
        compute: Stepping the padded block.
        packing: Copying margins into messages and out of them.
        travel: Messages on their way: latencies and bytes.
        interior: The part of `compute` that needs no margin of the same cycle.
        messages: Messages that a device sends, for one step.
        bytes: Their bytes, for one step.
        alone: What a single device would take, had it the memory.
        updates: Cells that a step of the whole grid updates.

    Example:
        >>> job = Job.of_radius((4096, 4096), bytes_per_cell=4)
        >>> found = estimate(job, known_devices()["A100"], Link(5e10, 5e-6), "2", 1)
        >>> found.with_overlap(True).communication < found.communication
        True
    """

    mesh: Mesh
    depth: int
    overlap: bool
    size: tuple[int, ...]
    block: tuple[int, ...]
    padded: tuple[int, ...]
    memory_bytes: float
    fits: bool
    compute: float
    packing: float
    travel: float
    interior: float
    messages: float
    bytes: float
    alone: float
    updates: float

    @property
    def hidden(self) -> float:
        """The part of `travel` that is hidden by the interior; 0 without overlap."""
        return min(self.travel, self.interior) if self.overlap else 0.0

    @property
    def communication(self) -> float:
        """Time for messages that is not hidden."""
        return self.packing + self.travel - self.hidden

    @property
    def step_time(self) -> float:
        """Seconds for one step."""
        return self.compute + self.communication

    @property
    def communication_share(self) -> float:
        """The part of a step that is spent on messages."""
        return self.communication / self.step_time

    @property
    def redundancy(self) -> float:
        """Cells computed twice, as a part of those owned."""
        return math.prod(self.padded) / math.prod(self.block) - 1

    @property
    def efficiency(self) -> float:
        """A single device's time divided by that of all devices together."""
        return self.alone / (self.mesh.ranks * self.step_time)

    @property
    def mlups(self) -> float:
        """Million cells updated a second, by all devices together."""
        return self.updates / self.step_time / 1e6

    def with_overlap(self, overlap: bool) -> "Estimate":
        """The same layout with messages hidden by the interior, or without."""
        return replace(self, overlap=overlap)


def estimate(
    job: Job,
    device: Device,
    link: Link,
    mesh: Mesh | str | int | Sequence[int],
    depth: int,
    *,
    overlap: bool = False,
) -> Estimate:
    """Return what a job costs on one layout.

    It is the time of the device with the largest block and neighbours on all sides. A
    round of messages along an axis takes one latency and the bytes of both messages one
    after the other.

    Args:
        job: What is computed.
        device: Each of the devices.
        link: What joins each to the others.
        mesh: How the grid is cut.
        depth: Steps between two exchanges.
        overlap: Hide messages while the interior is computed.

    Raises:
        ArgumentError: Mesh, size and depth do not fit; the message says what would.

    Example:
        >>> job = Job.of_radius((8192, 8192), bytes_per_cell=36)
        >>> link = Link(450e9, 3e-6)
        >>> found = estimate(job, known_devices()["H200"], link, "2x2", 4)
        >>> found.padded, found.messages, found.fits
        ((4104, 4104), 1.0, True)
    """
    if depth < 1:
        raise ArgumentError(f"`depth` must be at least 1, got {depth}")
    layout = Mesh(mesh).over(len(job.size))
    layout.block(0, job.size)
    wraps = per_axis("periodic", job.periodic, len(job.size))
    sides = [_sides(*each) for each in zip(layout.shape, wraps, strict=True)]
    if job.transforms and depth > 1:
        raise ArgumentError(
            f"`depth` {depth} is impossible: a phase changes every cell after every step; use 1"
        )
    margin = [m * (n > 0) for m, n in zip(job.reach(depth), sides, strict=True)]
    # Without a local step there is nothing to look for beyond a side.
    sides = [s * (m > 0) for s, m in zip(sides, margin, strict=True)]
    layout.check_margin(job.size, margin, depth=depth)
    block = tuple(-(-n // parts) for n, parts in zip(job.size, layout.shape, strict=True))
    padded = tuple(n + s * m for n, s, m in zip(block, sides, margin, strict=True))
    sent = [
        m * math.prod(padded[:axis]) * math.prod(block[axis + 1 :]) * job.bytes_sent_per_cell
        for axis, m in enumerate(margin)
    ]
    leaving = sum(s * each for s, each in zip(sides, sent, strict=True))
    rounds = sum(s > 0 for s in sides)
    memory = job.bytes_stored_per_cell * math.prod(padded) + 2 * leaving
    compute = job.step_time(device, math.prod(padded))
    calls, spread = transposed(job, layout, block)
    return Estimate(
        mesh=layout,
        depth=depth,
        overlap=overlap,
        size=job.size,
        block=block,
        padded=padded,
        memory_bytes=memory,
        fits=memory <= current().memory.limit * device.memory_bytes,
        compute=compute,
        packing=_PACKING_PASSES * (leaving / depth + spread) / device.bandwidth,
        travel=(rounds / depth + calls) * link.latency
        + (leaving / depth + spread) / link.bandwidth,
        # A phase needs all cells of a step before it sends any.
        interior=0.0
        if job.transforms
        else compute * _interior(job, block, sides, depth) / math.prod(padded),
        messages=sum(sides) / depth + calls * (layout.ranks - 1),
        bytes=leaving / depth + spread,
        alone=job.step_time(device, job.cells),
        updates=job.cells * job.updates_per_cell,
    )


def transposed(job: Job, mesh: Mesh, block: Sequence[int]) -> tuple[int, float]:
    """Exchanges of all with all that the transforms of a step need, and bytes that leave."""
    if mesh.ranks == 1 or not job.transforms:
        return 0, 0.0
    modes = (*job.size[:-1], job.size[-1] // 2 + 1)
    plan = stages(modes, mesh.ranks)
    # A line is gathered before it is transformed, and needs nothing on the way back.
    between = len(plan) - 1 + (plan[0].parts != mesh.shape)
    share = 0.5 if len(job.size) == 1 else 1.0
    parts = mesh.ranks - 1 if len(job.size) == 1 else (mesh.ranks - 1) / mesh.ranks
    held = math.prod(block) * job.modes_per_cell
    return math.ceil(share * job.transforms * between), share * between * held * parts


def _sides(parts: int, periodic: bool) -> int:
    """Sides with a neighbour, of the rank that has most of them."""
    return 0 if parts == 1 else 2 if periodic or parts > 2 else 1


def _interior(job: Job, block: Sequence[int], sides: Sequence[int], depth: int) -> float:
    """Cells of a step, on average over a cycle, that do not depend on its margins."""
    total = 0
    for steps in range(1, depth + 1):
        reach = job.reach(steps)
        total += math.prod(
            max(0, n - s * m) for n, s, m in zip(block, sides, reach, strict=True)
        )
    return total / depth
