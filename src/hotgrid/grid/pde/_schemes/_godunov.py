"""Conservation laws by MUSCL-Hancock: slopes in cells, half a step, then fluxes at faces."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from hotgrid.grid.model import Neighbours

from ._offsets import along

Cell = list[Tensor]
"""Several quantities of every cell."""
# Differences below its root are taken as smooth; without it no gradient exists where cells
# are equal.
_SMOOTH = 1e-6


class Law(ABC):
    """What is conserved, and how it flows.

    Slopes are taken of plain quantities, such as velocity instead of momentum.
    """

    @abstractmethod
    def plain(self, conserved: Cell) -> Cell:
        """Plain quantities from conserved ones."""

    @abstractmethod
    def rate(self, plain: Cell, slope: Cell, dim: int) -> Cell:
        """How fast plain quantities change where they have such slopes along a dim."""

    @abstractmethod
    def flux(self, left: Cell, right: Cell, dim: int) -> Cell:
        """What flows through a face between two cells, from their plain quantities."""


def conserved_change(law: Law, fields: Sequence[Neighbours], dt: Tensor) -> Cell:
    """What flows into every cell in a step, less what flows out; needs a radius of 2.

    Second order where the solution is smooth: slopes limited after van Albada, and the
    predictor of Hancock along each dim.

    Args:
        law: What is conserved.
        fields: The conserved quantities.
        dt: The time of a step, over the size of a cell.
    """
    rank = fields[0].rank
    change: Cell = []
    for dim in range(rank):
        cells = [
            law.plain([each[along(rank, dim, at)] for each in fields]) for at in range(-2, 3)
        ]
        ends = [_ends(law, *cells[at : at + 3], dt, dim) for at in range(3)]
        (_, before), (low, high), (after, _) = ends
        flows = zip(law.flux(before, low, dim), law.flux(high, after, dim), strict=True)
        gains = [dt * (into - out) for into, out in flows]
        change = [x + g for x, g in zip(change, gains, strict=True)] if change else gains
    return change


def _ends(
    law: Law, below: Cell, here: Cell, above: Cell, dt: Tensor, dim: int
) -> tuple[Cell, Cell]:
    """Plain quantities at the low and the high face of a cell, half a step later."""
    slopes = [_limited(x - b, a - x) for b, x, a in zip(below, here, above, strict=True)]
    rates, half = law.rate(here, slopes, dim), 0.5 * dt
    later = [x + half * rate for x, rate in zip(here, rates, strict=True)]
    halves = [0.5 * slope for slope in slopes]
    return (
        [x - s for x, s in zip(later, halves, strict=True)],
        [x + s for x, s in zip(later, halves, strict=True)],
    )


def _limited(below: Tensor, above: Tensor) -> Tensor:
    """The slope between two differences: van Albada, van Leer and Roberts 1982."""
    b, a = below * below + _SMOOTH, above * above + _SMOOTH
    return (a * below + b * above) / (a + b)


def fastest(left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """The speeds of the slowest and the fastest wave of a face, from velocity and sound."""
    (u, c), (v, d) = left, right
    return torch.minimum(u - c, v - d), torch.maximum(u + c, v + d)
