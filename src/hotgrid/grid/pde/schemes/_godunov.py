"""Conservation laws by MUSCL-Hancock: slopes in cells, half a step, then fluxes at faces."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from hotgrid.grid.model import Neighbours

from ._offsets import along

Cell = list[Tensor]
"""Several quantities of every cell."""
Offset = tuple[int, ...]
# Differences below its root are taken as smooth; without it no gradient exists where cells
# are equal.
_SMOOTH = 1e-6


class Law(ABC):
    """A conservation law: what is conserved, and how it flows.

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
        """The flux through a face between two cells, from their plain quantities."""


def conserved_change(law: Law, fields: Sequence[Neighbours], dt: Tensor) -> Cell:
    """The flow into every cell in a step minus the flow out; needs a radius of 2.

    Second order where the solution is smooth: slopes limited after van Albada, and the
    predictor of Hancock, with slopes along all dims.

    Args:
        law: What is conserved.
        fields: The conserved quantities.
        dt: The time of a step, over the size of a cell.
    """
    rank = fields[0].rank
    here = (0,) * rank
    beside = [along(rank, dim, by) for dim in range(rank) for by in (-1, 1)]
    plain: dict[Offset, Cell] = {}
    for at in [here, *[_sum(a, b) for a in [here, *beside] for b in beside]]:
        if at not in plain:
            plain[at] = law.plain([each[at] for each in fields])
    later = {at: _half_later(law, plain, at, dt) for at in [here, *beside]}
    change: Cell = []
    for dim in range(rank):
        before, after = (along(rank, dim, by) for by in (-1, 1))
        into = law.flux(_face(later[before], dim, 1), _face(later[here], dim, -1), dim)
        out = law.flux(_face(later[here], dim, 1), _face(later[after], dim, -1), dim)
        gains = [dt * (i - o) for i, o in zip(into, out, strict=True)]
        change = [x + g for x, g in zip(change, gains, strict=True)] if change else gains
    return change


def _half_later(
    law: Law, plain: Mapping[Offset, Cell], at: Offset, dt: Tensor
) -> tuple[Cell, list[Cell]]:
    """Plain quantities of a cell half a step later, and their slopes along each dim."""
    rank, here, half = len(at), plain[at], 0.5 * dt
    later, slopes = here, []
    for dim in range(rank):
        below, above = (plain[_sum(at, along(rank, dim, by))] for by in (-1, 1))
        slope = [_limited(x - b, a - x) for b, x, a in zip(below, here, above, strict=True)]
        rates = law.rate(here, slope, dim)
        later = [x + half * rate for x, rate in zip(later, rates, strict=True)]
        slopes.append(slope)
    return later, slopes


def _face(cell: tuple[Cell, list[Cell]], dim: int, side: int) -> Cell:
    """Plain quantities at the low (-1) or high (1) face of a cell along a dim."""
    later, slopes = cell
    return [x + 0.5 * side * s for x, s in zip(later, slopes[dim], strict=True)]


def _sum(a: Offset, b: Offset) -> Offset:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _limited(below: Tensor, above: Tensor) -> Tensor:
    """The slope between two differences: van Albada, van Leer and Roberts 1982."""
    b, a = below * below + _SMOOTH, above * above + _SMOOTH
    return (a * below + b * above) / (a + b)


def fastest(left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """The speeds of the slowest and the fastest wave of a face, from velocity and sound."""
    (u, c), (v, d) = left, right
    return torch.minimum(u - c, v - d), torch.maximum(u + c, v + d)
