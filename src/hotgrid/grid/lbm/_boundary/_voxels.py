"""Which cells are inside a closed surface of triangles, by exact arithmetic.

A line along x through every row of cells meets the surface; between a place where it goes in
and one where it comes out, cells are inside. Corners are rounded to a fraction of a cell, so
that whole numbers decide which triangle a line meets: none slips through where they join.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

# Products of two differences of coordinates must fit into 63 bits.
_BITS, _FINEST = 29, 16
_PAIRS = 1 << 21


def inside_surface(triangles: Tensor, size: tuple[int, ...]) -> Tensor:
    """The cells inside a closed surface, bool `[z, y, x]`.

    Arguments:
        triangles: Corners in cells, float64 `[triangles, 3, 3]`, coordinates in the order
            of the axes. Every edge is in as many triangles one way as the other way.
        size: The grid.
    """
    reach = max(*size, triangles.abs().max().item(), 1.0)
    unit = 2 ** min(_FINEST, _BITS - math.ceil(math.log2(reach)))
    corners = (triangles * unit).round().long()
    turns = torch.zeros(*size[:2], size[2] + 1, dtype=torch.int32)
    for each, line in _meetings(corners[..., :2], unit, size):
        met, sign, place = _crossings(corners[each], line * unit)
        z, y = line[met].unbind(1)
        x = (place / unit).ceil().clamp(0, size[2]).long()
        turns.index_put_((z, y, x), sign, accumulate=True)
    return turns[..., :-1].cumsum(-1) != 0


def _meetings(
    corners: Tensor, unit: int, size: tuple[int, ...]
) -> Iterator[tuple[Tensor, Tensor]]:
    """Triangles and lines `(z, y)` through the rectangles around them, in parts."""
    most = torch.tensor(size[:2]) - 1
    low = (-(-corners.amin(1) // unit)).clamp(min=0)
    wide = (torch.minimum(corners.amax(1) // unit, most) - low + 1).clamp(min=0)
    counts = wide.prod(1)
    parts = (counts.cumsum(0) // _PAIRS).unique_consecutive(return_counts=True)[1]
    for triangles in torch.arange(len(corners)).split(parts.tolist()):
        many = counts[triangles]
        each = triangles.repeat_interleave(many)
        first = (many.cumsum(0) - many).repeat_interleave(many)
        rank = torch.arange(len(each)) - first
        across = wide[each, 1]
        yield each, low[each] + torch.stack([rank // across, rank % across], 1)


def _crossings(corners: Tensor, line: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Which lines meet their triangle, from which side, and where along x.

    Arguments:
        corners: Corners of triangles, int64 `[pairs, 3, 3]`.
        line: Coordinates of lines, int64 `[pairs, 2]`.

    Returns:
        The places of the pairs that meet; a sign int32 and a place float64 for each.
    """
    away = corners[..., :2] - line[:, None]
    edge = corners.roll(-1, 1)[..., :2] - corners[..., :2]
    area = edge[..., 1] * away[..., 0] - edge[..., 0] * away[..., 1]
    # A line on an edge is taken to be a trifle further along y, then along z.
    side = area.sign()
    for tie in (edge[..., 0], -edge[..., 1]):
        side = torch.where(side == 0, tie.sign(), side)
    met = (side.sum(1).abs() == 3).nonzero().flatten()
    shares = area[met].roll(-1, 1).double()
    place = (shares * corners[met, :, 2]).sum(1) / shares.sum(1)
    return met, side[met, 0].int(), place
