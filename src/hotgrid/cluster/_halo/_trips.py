"""Which cells travel between blocks, and in which order. Plain integers, no tensors.

A margin is filled by trips. A trip has a direction: every rank that takes part sends the
cells at its side of that direction to the next rank there, and receives from the rank
behind it. Ranks take the same trips in the same order, so messages between two ranks that
are neighbours at both sides (a ring of two) are distinguished by tag and by order.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from hotgrid.cluster._block import Block, per_axis
from hotgrid.cluster._mesh import Mesh

Region = tuple[slice, ...]


@dataclass(frozen=True)
class Trip:
    """One message out and one in.

    Attributes:
        direction: Where cells go: -1, 0 or 1 along each axis.
        tag: The number of the trip.
        target: The rank that gets cells; None beyond a bounded end.
        source: The rank that cells come from; None at a bounded end.
        leaves: The cells that are sent, in the padded block.
        arrives: The margin that is filled.
    """

    direction: tuple[int, ...]
    tag: int
    target: int | None
    source: int | None
    leaves: Region
    arrives: Region


def trips_by_axis(
    mesh: Mesh,
    rank: int,
    block: Block,
    margin: Sequence[int],
    periodic: bool | Sequence[bool],
) -> list[list[Trip]]:
    """Return a round of two trips for every axis with a margin.

    Later rounds carry the margins that earlier ones have filled: corners come by way of
    two neighbours.
    """
    rounds = []
    for axis, width in enumerate(margin):
        if width == 0:
            continue
        directions = [_along(axis, step, len(margin)) for step in (-1, 1)]
        rounds.append(
            [
                _trip(
                    mesh, rank, block, margin, periodic, direction, 2 * axis + high, whole=axis
                )
                for high, direction in enumerate(directions)
            ]
        )
    return rounds


def trips_at_once(
    mesh: Mesh,
    rank: int,
    block: Block,
    margin: Sequence[int],
    periodic: bool | Sequence[bool],
) -> list[list[Trip]]:
    """Return one round with a trip to every neighbour, diagonal ones included."""
    steps = [(-1, 0, 1) if width else (0,) for width in margin]
    directions = [each for each in itertools.product(*steps) if any(each)]
    trips = [
        _trip(mesh, rank, block, margin, periodic, direction, tag, whole=0)
        for tag, direction in enumerate(directions)
    ]
    return [trips] if trips else []


def _along(axis: int, step: int, axes: int) -> tuple[int, ...]:
    return tuple(step if each == axis else 0 for each in range(axes))


def _trip(
    mesh: Mesh,
    rank: int,
    block: Block,
    margin: Sequence[int],
    periodic: bool | Sequence[bool],
    direction: tuple[int, ...],
    tag: int,
    whole: int,
) -> Trip:
    """A trip; axes before `whole` travel with their margins, the others without."""
    leaves, arrives = [], []
    sides = block.margins(margin, per_axis("periodic", periodic, len(margin)))
    for axis, (step, width, count, (low, high)) in enumerate(
        zip(direction, margin, block.size, sides, strict=True)
    ):
        end = low + count
        if step == 0:
            here = slice(0, end + high) if axis < whole else slice(low, end)
            leaves.append(here)
            arrives.append(here)
        elif step < 0:
            leaves.append(slice(low, low + width))
            arrives.append(slice(end, end + high))
        else:
            leaves.append(slice(end - width, end))
            arrives.append(slice(0, low))
    back = tuple(-step for step in direction)
    return Trip(
        direction,
        tag,
        target=mesh.neighbour(rank, direction, periodic),
        source=mesh.neighbour(rank, back, periodic),
        leaves=tuple(leaves),
        arrives=tuple(arrives),
    )
