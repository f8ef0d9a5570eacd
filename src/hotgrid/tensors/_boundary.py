"""What a cell sees beyond the end of a dim."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Literal

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError

Boundary = Literal["periodic", "edge"] | float
"""`"periodic"`: the other end; `"edge"`: the last cell again; a number: that number."""


def fitting_number(argument: str, value: float, dtype: torch.dtype) -> float:
    """Return `value` as `dtype` holds it; refuse to round 0.5 to 0 in an int tensor."""
    if dtype.is_floating_point or dtype.is_complex:
        return value
    low, high = (
        (0, 1) if dtype is torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    )
    if low <= value <= high and value == int(value):
        return bool(value) if dtype is torch.bool else int(value)
    raise ArgumentError(
        f"`{argument}` {value!r} does not fit into {dtype}: "
        f"give a whole number from {low} to {high}, or convert the tensor first"
    )


def expect_boundary(
    boundary: str | float, dtype: torch.dtype, words: tuple[str, ...] = ("periodic", "edge")
) -> str | float:
    """Return `boundary` if it is one of `words` or a number that fits `dtype`."""
    if isinstance(boundary, int | float):
        return fitting_number("boundary", boundary, dtype)
    if boundary in words:
        return boundary
    near = get_close_matches(str(boundary), words, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ArgumentError(
        f"`boundary` {boundary!r} is unknown: {hint}"
        f"use {', '.join(map(repr, words))} or a number to fill with"
    )


def extend(x: Tensor, widths: Mapping[int, tuple[int, int]], boundary: str | float) -> Tensor:
    """Add cells before and after the ends of the dims in `widths`; any rank and dtype.

    `torch.nn.functional.pad` has circular and replicate modes, but only for some
    ranks and dtypes, and it takes a fill value as a float, which loses large ints.
    """
    if not isinstance(boundary, str):
        outward = range(x.ndim - 1, min(widths) - 1, -1)
        pads = [width for dim in outward for width in widths.get(dim, (0, 0))]
        return torch.constant_pad_nd(x, pads, boundary)
    pieces = _periodic_pieces if boundary == "periodic" else _edge_pieces
    for dim, (before, after) in widths.items():
        if x.shape[dim] == 0:
            # No cell to repeat here, and none that would look at the repetition.
            x = extend(x, {dim: (before, after)}, 0)
        else:
            x = torch.cat(pieces(x, dim, before, after), dim)
    return x


def _periodic_pieces(x: Tensor, dim: int, before: int, after: int) -> list[Tensor]:
    n = x.shape[dim]
    if before > n or after > n:
        around = torch.arange(-before, n + after, device=x.device) % n
        return [x.index_select(dim, around)]
    return [x.narrow(dim, n - before, before), x, x.narrow(dim, 0, after)]


def _edge_pieces(x: Tensor, dim: int, before: int, after: int) -> list[Tensor]:
    first, last = x.narrow(dim, 0, 1), x.narrow(dim, x.shape[dim] - 1, 1)
    return [_repeat(first, dim, before), x, _repeat(last, dim, after)]


def _repeat(cell: Tensor, dim: int, count: int) -> Tensor:
    return cell.expand(*cell.shape[:dim], count, *cell.shape[dim + 1 :])
