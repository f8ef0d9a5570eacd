"""Take or fill a region given by slices."""

from types import EllipsisType
from typing import SupportsFloat, SupportsIndex

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError

from ._arguments import expect_tensor, shown
from ._boundary import as_number, fitting_number, number_range
from ._dims import expect_dim
from ._slices import SlicesLike, fit, index_of, text_of


def slice_dim(x: Tensor, dim: SupportsIndex, item: slice | int | str) -> Tensor:
    """Return a slice of `x` along one dim, as a view.

    As in Python, an int removes the dim and a slice keeps it.

    Args:
        x: `[..., n, ...]`, with `n` at `dim`.
        dim: The dim to slice.
        item: A slice or an int, or either as text: `"1:-1"`.

    Returns:
        `[..., m, ...]`, or `[...]` without the dim for an int.

    Raises:
        ArgumentError: Not exactly one slice or int, or a syntax error in the text.
        DimensionError: There is no such `dim`, or the int is out of range.

    Example:
        >>> slice_dim(torch.arange(6).reshape(2, 3), -1, "1:")
        tensor([[1, 2],
                [4, 5]])
    """
    dim = expect_dim(expect_tensor("`x`", x), dim)
    index = index_of(item)
    if len(index) != 1 or isinstance(index[0], EllipsisType):
        raise ArgumentError(f"`{text_of(index)}` must be one slice or int, for dim {dim}")
    return x[fit((*[slice(None)] * dim, *index), x.shape)]


def slice_fill(
    x: Tensor, slices: SlicesLike, value: Tensor | SupportsFloat | complex
) -> Tensor:
    """Return a copy of `x` with a region filled; `x` is unchanged.

    The gradient reaches `x` outside the region and `value`, if it is a tensor,
    inside.

    Args:
        x: `[...]`, any dtype.
        slices: The region, as `Slices`, text (`"1:-1, ..., 3"`) or Python slices.
        value: A number that the dtype can hold, or a tensor that broadcasts to the
            region and whose dtype `x` can hold: its kind and its whole range. An
            int64 tensor does not go into int8, whatever its numbers are: they are
            not read back, since that would wait for the device.

    Returns:
        A new tensor of the shape and dtype of `x`.

    Raises:
        ArgumentError: `value` does not match the region or the dtype or is neither a
            number nor a tensor, or a syntax error in the text.
        DimensionError: `slices` does not match the shape.

    Example:
        >>> slice_fill(torch.zeros(2, 4), ":, 1:-1", 7)
        tensor([[0., 7., 7., 0.],
                [0., 7., 7., 0.]])
    """
    index = fit(index_of(slices), expect_tensor("`x`", x).shape)
    if isinstance(value, Tensor):
        _expect_fits(value, x[index].shape, x.dtype)
    elif as_number(value) is None:
        raise ArgumentError(
            f"`value` {shown(value)} is neither a number nor a tensor: "
            "use `torch.as_tensor(...)`"
        )
    else:
        value = fitting_number("value", value, x.dtype)
    filled = x.clone()
    filled[index] = value  # pyright: ignore[reportArgumentType]
    return filled


def _expect_fits(value: Tensor, region: torch.Size, dtype: torch.dtype) -> None:
    lost = "kind" if _kind(value.dtype) > _kind(dtype) else ""
    (low, high), (lowest, highest) = number_range(value.dtype), number_range(dtype)
    if not lost and not lowest <= low <= high <= highest:
        lost = "range"
    if lost:
        raise ArgumentError(
            f"`value` is {value.dtype} and would lose its {lost} in {dtype}: "
            "convert one of them with `.to(...)`"
        )
    ends = zip(reversed(value.shape), reversed(region), strict=False)
    if value.ndim > len(region) or any(n not in (1, size) for n, size in ends):
        raise ArgumentError(
            f"`value` of shape {tuple(value.shape)} does not broadcast to the region of shape "
            f"{tuple(region)}"
        )


def _kind(dtype: torch.dtype) -> int:
    # torch.can_cast says the same, but breaks a compiled graph.
    if dtype.is_complex:
        return 3
    return 2 if dtype.is_floating_point else int(dtype is not torch.bool)
