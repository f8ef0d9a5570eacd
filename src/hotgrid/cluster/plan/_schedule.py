"""A simulated exchange schedule: when each rank computes, sends, waits and continues.

What `estimate` computes by a formula is here simulated, message by message, with ranks that
are not equally fast. A rank can leave a round only when both neighbours have sent, so a
late one delays its neighbours, and they others. All events of a round are known once
the clocks of the round before are, so a round is a few array operations for all ranks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotgrid.cluster._block import per_axis
from hotgrid.cluster._mesh import Mesh
from hotgrid.errors import ArgumentError

from ._estimate import Estimate, Job, transposed
from ._machine import Link

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Round:
    """The two messages along one axis, or an exchange of all ranks with all.

    Attributes:
        axis: Along which axis of the mesh; None for all with all.
        latency: Seconds from sending to arrival of an empty message.
        transfer: Seconds that the bytes of one message keep the link of their sender busy.

    Example:
        >>> Round(axis=0, latency=5e-6, transfer=2e-6).axis
        0
    """

    axis: int | None
    latency: float
    transfer: float


@dataclass(frozen=True)
class MessageSchedule:
    """The result of a simulated run.

    Attributes:
        ranks: How many there were.
        cycles: How many exchanges were made.
        seconds: When the last rank was done.
        waiting: The part of that time in which ranks did not compute, on average.
        earliest: When the first rank was done.

    Example:
        >>> run = MessageSchedule(ranks=2, cycles=10, seconds=0.5, waiting=0.1, earliest=0.4)
        >>> run.seconds_per_cycle
        0.05
    """

    ranks: int
    cycles: int
    seconds: float
    waiting: float
    earliest: float

    @property
    def seconds_per_cycle(self) -> float:
        """Time for the steps between two exchanges and one exchange."""
        return self.seconds / self.cycles


def simulate_schedule(
    mesh: Mesh | str | Sequence[int],
    rounds: Sequence[Round],
    compute: float,
    *,
    interior: float = 0.0,
    overlap: bool = False,
    jitter: float = 0.0,
    cycles: int = 50,
    periodic: bool | Sequence[bool] = True,
    seed: int = 0,
) -> MessageSchedule:
    """Simulate cycles of computing and exchanging on every rank of a mesh.

    Without overlap a rank computes, then goes through the rounds. With it, it starts the
    rounds, computes its interior meanwhile, and computes the rest when both are done.

    Args:
        mesh: The ranks.
        rounds: The exchange, axis by axis.
        compute: Seconds of computing in a cycle.
        interior: The part of `compute` that needs no message of the same cycle.
        overlap: Compute the interior while messages travel.
        jitter: By how much a rank is late in a cycle, as a part of `compute`, on average;
            drawn for every rank and cycle from an exponential distribution.
        cycles: How many.
        periodic: Whether the ends of the mesh are neighbours, for all axes or for each.
        seed: Seeds the jitter.

    Raises:
        ArgumentError: A time is negative, there is no cycle, or the interior is more than
            all there is to compute.

    Example:
        >>> rounds = [Round(axis=0, latency=1e-5, transfer=2e-5)]
        >>> found = simulate_schedule("8", rounds, compute=1e-3, cycles=10)
        >>> round(found.seconds_per_cycle, 9)
        0.00105
    """
    import numpy as np

    layout = Mesh(mesh)
    times = [compute, jitter, interior, compute - interior]
    times += [time for each in rounds for time in (each.latency, each.transfer)]
    if min(times) < 0 or cycles < 1:
        raise ArgumentError(
            f"times and jitter must be 0 or more, the interior at most what there is to "
            f"compute, and cycles 1 or more; got compute {compute}, interior {interior}, "
            f"jitter {jitter}, cycles {cycles}, {rounds}"
        )
    wraps = per_axis("periodic", periodic, len(layout.shape))
    generator = np.random.default_rng(seed)
    clock = np.zeros(layout.shape)
    busy = np.zeros(layout.shape)
    for _ in range(cycles):
        slowness = 1 + jitter * generator.exponential(size=layout.shape)
        busy += compute * slowness
        if not overlap:
            clock = _exchanged(clock + compute * slowness, rounds, wraps)
            continue
        arrived = _exchanged(clock, rounds, wraps)
        clock = np.maximum(arrived, clock + interior * slowness)
        clock += (compute - interior) * slowness
    last = float(clock.max())
    return MessageSchedule(
        ranks=layout.ranks,
        cycles=cycles,
        seconds=last,
        waiting=float(1 - busy.mean() / last) if last else 0.0,
        earliest=float(clock.min()),
    )


def rounds_of(found: Estimate, job: Job, link: Link) -> list[Round]:
    """Return the exchange that an estimate is about.

    Example:
        >>> job = Job.of_radius((4096, 4096), bytes_per_cell=36)
        >>> link = Link(50e9, 5e-6)
        >>> found = estimate(job, known_devices()["H200"], link, "2x2", 4)
        >>> [each.axis for each in rounds_of(found, job, link)]
        [0, 1]
    """
    found_rounds = []
    cells = 1
    for axis, parts in enumerate(found.mesh.shape):
        rest = 1
        for n in found.block[axis + 1 :]:
            rest *= n
        margin = job.reach(found.depth)[axis]
        if parts > 1 and margin:
            sent = margin * cells * rest * job.bytes_sent_per_cell
            found_rounds.append(Round(axis, link.latency, sent / link.bandwidth))
        cells *= found.padded[axis]
    calls, spread = transposed(job, found.mesh, found.block)
    if calls:
        found_rounds.append(Round(None, calls * link.latency, spread / link.bandwidth))
    return found_rounds


def _exchanged(
    ready: "NDArray[np.float64]", rounds: Sequence[Round], wraps: Sequence[bool]
) -> "NDArray[np.float64]":
    """When each rank has all its margins, from when it was ready to send."""
    import numpy as np

    for each in rounds:
        if each.axis is None:
            ready = np.full_like(ready, ready.max() + each.latency + each.transfer)
            continue
        if ready.shape[each.axis] == 1:
            continue
        before = _neighbour(ready, each.axis, -1, wraps[each.axis])
        behind = _neighbour(ready, each.axis, 1, wraps[each.axis])
        # Both messages leave through one port: first the one to the rank before.
        has_before, has_behind = np.isfinite(before), np.isfinite(behind)
        left = ready + each.transfer * (1.0 * has_before + has_behind)
        second = each.transfer * (1 + _neighbour(1.0 * has_before, each.axis, -1, True))
        ready = np.maximum.reduce(
            [left, before + second + each.latency, behind + each.transfer + each.latency]
        )
    return ready


def _neighbour(
    clock: "NDArray[np.float64]", axis: int, step: int, periodic: bool
) -> "NDArray[np.float64]":
    """The value of the neighbour; beyond a bounded end it is never anything."""
    import numpy as np

    found = np.roll(clock, -step, axis)
    if not periodic:
        edge = [slice(None)] * clock.ndim
        edge[axis] = slice(0, 1) if step < 0 else slice(-1, None)
        found[tuple(edge)] = -np.inf
    return found
