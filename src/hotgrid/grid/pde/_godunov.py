"""Conservation laws by MUSCL-Hancock: slopes in cells, half a step, then fluxes at faces."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from hotgrid.grid.model import Neighbours

from ._offsets import along

Cell = list[Tensor]
"""The conserved quantities of every cell."""
Flux = Callable[[Cell, int], tuple[Cell, Tensor, Tensor]]
"""From cells and a dim to fluxes, the velocity along it, and the speed of waves."""


def conserved_change(fields: Sequence[Neighbours], flux: Flux, dt: Tensor) -> Cell:
    """What flows into every cell in a step, less what flows out; needs a radius of 2.

    Second order where the solution is smooth (van Leer's slopes limited by minmod, the
    predictor of Hancock along each dim), and the Riemann solver of Harten, Lax and van Leer.

    Args:
        fields: The conserved quantities.
        flux: The law.
        dt: The time of a step.
    """
    rank = fields[0].rank
    change: Cell = [torch.zeros_like(each.here) for each in fields]
    for dim in range(rank):
        ends = [_ends(fields, flux, dt, rank, dim, at) for at in (-1, 0, 1)]
        (_, before), (low, high), (after, _) = ends
        into, out = _hll(before, low, flux, dim), _hll(high, after, flux, dim)
        change = [x + dt * (i - o) for x, i, o in zip(change, into, out, strict=True)]
    return change


def _ends(
    fields: Sequence[Neighbours], flux: Flux, dt: Tensor, rank: int, dim: int, at: int
) -> tuple[Cell, Cell]:
    """The quantities at the low and the high face of a cell, half a step later."""
    low, high = [], []
    for each in fields:
        here = each[along(rank, dim, at)]
        below = here - each[along(rank, dim, at - 1)]
        above = each[along(rank, dim, at + 1)] - here
        slope = 0.5 * (below.sign() + above.sign()) * torch.minimum(below.abs(), above.abs())
        low.append(here - 0.5 * slope)
        high.append(here + 0.5 * slope)
    gains = [
        0.5 * dt * (i - o) for i, o in zip(flux(low, dim)[0], flux(high, dim)[0], strict=True)
    ]
    return [x + g for x, g in zip(low, gains, strict=True)], [
        x + g for x, g in zip(high, gains, strict=True)
    ]


def _hll(left: Cell, right: Cell, flux: Flux, dim: int) -> Cell:
    """What flows through a face between two states."""
    of_left, u_left, c_left = flux(left, dim)
    of_right, u_right, c_right = flux(right, dim)
    slow = torch.minimum(u_left - c_left, u_right - c_right).clamp(max=0)
    fast = torch.maximum(u_left + c_left, u_right + c_right).clamp(min=0)
    # Never zero: waves have a speed.
    share = 1 / (fast - slow)
    return [
        share * (fast * f - slow * g + fast * slow * (b - a))
        for f, g, a, b in zip(of_left, of_right, left, right, strict=True)
    ]
