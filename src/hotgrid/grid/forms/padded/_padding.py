"""How a padded grid is cut: the width of its margin, and the cells of one call.

A wide margin lasts for many steps, and is computed with every one of them.
"""

import math
from collections.abc import Sequence

from hotgrid.grid.forms._form import Setting

_PIECE = 256
# Many small pieces are quiet where large ones are not.
_SMALL_PIECE = 64
# So few pieces are made equally long.
_FEW = 64
_DEPTHS = (1, 2, 4, 8)
# What a step costs when that many are made while the cells are in the cache; measured
# with D2Q9 on 1024 x 1024.
_GAIN = {1: 1.0, 2: 0.83, 4: 0.7, 8: 0.65}
# Bytes that the steps of a sweep may hold in a core's own cache.
_CACHE = 3 << 18
# What a refresh costs beside its copies, in numbers computed.
_REFRESH = 4_000


def end_cells(size: Sequence[int], radius: int) -> int:
    """Cells at either end of a flat plane from which a step would look beyond it."""
    return radius * sum(math.prod(size[k + 1 :]) for k in range(len(size)))


def computed_cells(size: Sequence[int], radius: int) -> int:
    """How many cells of a flat plane a step computes."""
    return math.prod(size) - 2 * end_cells(size, radius)


def piece_of(setting: Setting, margin: Sequence[int]) -> int:
    """Cells of one call: about a thousand numbers, so that a call costs next to nothing."""
    size = [n + 2 * m for n, m in zip(setting.size, margin, strict=True)]
    numbers = sum(field.components for field in setting.model.fields)
    wanted = max(_PIECE, 1024 // numbers // 64 * 64)
    if setting.model.quiet() is not None:
        wanted = _SMALL_PIECE
    cells = computed_cells(size, setting.model.radius)
    pieces = cells // wanted // 2 * 2
    if 0 < pieces < _FEW:
        # None that is mostly beyond the end, and as many for each of two threads.
        wanted = -(-cells // pieces // 8) * 8
    return min(wanted, cells)


def fitting_depth(setting: Setting, depth: int) -> int:
    """The depth, or the largest below it that the grid allows."""
    # Steps compute a margin as if it were cells, which it is only where it is periodic.
    if any(not all(field.joined(setting.rank)) for field in setting.model.fields):
        return 1
    # A periodic margin repeats cells of the grid, so it cannot be wider than that.
    return next((d for d in range(depth, 1, -1) if fits_inside(setting, d)), 1)


def best_depth(setting: Setting) -> int:
    """The depth that costs least: cells computed twice against refreshes and the cache."""
    model = setting.model
    numbers = sum(field.components for field in model.fields)
    cells = math.prod(setting.size)
    width = 2 * sum(f.components * setting.kept_as(f).itemsize for f in model.fields)
    width += sum(known.components * setting.kept_as(known).itemsize for known in model.inputs)

    def cost(depth: int) -> float:
        """Time of a step in units of a number computed; about a nanosecond."""
        margin = margin_of(setting, depth)
        shares = [2 * m / n for n, m in zip(setting.size, margin, strict=True)]
        padded = [n + 2 * m for n, m in zip(setting.size, margin, strict=True)]
        held = width * (depth + 1) * end_cells(padded, model.radius)
        gain = _GAIN[depth] if held <= _CACHE < width * cells else 1.0
        work = numbers * cells * math.prod(1 + share for share in shares) * gain
        return work + (_REFRESH + numbers * cells * sum(shares) / 2) / depth

    return min((d for d in _DEPTHS if fitting_depth(setting, d) == d), key=cost)


def fits_inside(setting: Setting, depth: int) -> bool:
    """Whether the grid is as wide as the margin that would repeat it."""
    margin = margin_of(setting, depth)
    return all(m <= n for n, m in zip(setting.size, margin, strict=True))


def margin_of(setting: Setting, depth: int) -> tuple[int, ...]:
    """Cells beyond the grid along each axis, for a number of steps between two refreshes."""
    radius = setting.model.radius
    *before, last = setting.model.reach(depth, setting.rank)
    # A step leaves out the outermost cells of the first and the last row it writes. If
    # changes spread slower than the radius, they would be missed.
    return (*before, min(depth * radius, last + radius))
