"""Boundaries: what a cell sees beyond the end of a dim."""

from collections.abc import Mapping
from math import inf
from numbers import Complex, Real
from typing import Any, Literal, SupportsFloat

import numpy as np
import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, near

from ._arguments import shown

Boundary = Literal["periodic", "edge"] | SupportsFloat | complex
"""`"periodic"`: the other end; `"edge"`: the last cell again; a number: that number."""


def as_number(value: Any) -> Any:
    """Return `value` if it is a number, numpy's and fractions too, or None."""
    if isinstance(value, int | float | complex):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, Complex) else None


def number_range(dtype: torch.dtype) -> tuple[float, float]:
    """Return the smallest and the largest number of `dtype`; of a part, if complex."""
    if dtype is torch.bool:
        return 0, 1
    real = dtype.is_floating_point or dtype.is_complex
    limits = torch.finfo(dtype) if real else torch.iinfo(dtype)
    return limits.min, limits.max


def fitting_number(argument: str, value: Any, dtype: torch.dtype) -> complex:
    """Return `value` as `dtype` holds it; refuse to round 0.5 to 0 in an int tensor."""
    number = as_number(value)
    real = _is_real(number)
    low, high = number_range(dtype)
    if dtype.is_complex:
        kind, fits = "number with parts", _within(number, high)
    elif dtype.is_floating_point:
        kind, fits = "real number", real and _within(number, high)
    else:
        kind = "whole number"
        fits = real and low <= number <= high and number == int(number)
    if not fits:
        raise ArgumentError(
            f"`{argument}` {shown(value)} does not fit into {dtype}: "
            f"give a {kind} from {low} to {high}, or convert the tensor first"
        )
    if not real:
        return complex(number)
    if dtype.is_complex or dtype.is_floating_point:
        return float(number)
    return bool(number) if dtype is torch.bool else int(number)


def expect_boundary(
    boundary: object, dtype: torch.dtype, words: tuple[str, ...] = ("periodic", "edge")
) -> str | complex:
    """Return `boundary` if it is one of `words` or a number that fits `dtype`."""
    if as_number(boundary) is not None:
        return fitting_number("boundary", boundary, dtype)
    if isinstance(boundary, str) and boundary in words:
        return boundary
    raise ArgumentError(
        f"`boundary` {shown(boundary)} is unknown; "
        f"use {', '.join(map(repr, words))} or a number to fill with{near(boundary, words)}"
    )


def _is_real(number: object) -> bool:
    return isinstance(number, Real)


def _within(number: complex, high: float) -> bool:
    # Infinity and NaN are numbers of every float dtype.
    return not any(high < abs(part) < inf for part in (number.real, number.imag))


def extend(x: Tensor, widths: Mapping[int, tuple[int, int]], boundary: str | complex) -> Tensor:
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
            # No cell to repeat here, and none that would read the repetition.
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
