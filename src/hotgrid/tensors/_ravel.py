"""From a multi-index to the place in row-major memory."""

from collections.abc import Sequence
from math import prod
from typing import Any, overload

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, DimensionError

from ._arguments import expect_shape, items_of, shown, whole_number


@overload
def ravel_index(index: Sequence[int], shape: Sequence[int]) -> int: ...
@overload
def ravel_index(index: Sequence[Tensor], shape: Sequence[int]) -> Tensor: ...
def ravel_index(index: Sequence[int] | Sequence[Tensor], shape: Sequence[int]) -> int | Tensor:
    """Return the row-major flat index; the inverse of `torch.unravel_index`.

    `x.flatten()[ravel_index(index, x.shape)] == x[index]`. Negative coordinates
    count from the end. Tensors are not read back to be checked, since that would
    wait for the device; instead a coordinate out of range gives `numel`, an index
    that every torch gather refuses.

    Args:
        index: One coordinate per dim: ints, or integer tensors of shapes that
            broadcast together.
        shape: The shape that is indexed.

    Returns:
        An int, or an int64 tensor of the broadcast shape.

    Raises:
        ArgumentError: A coordinate that is not whole, tensors that do not broadcast
            together, or a `shape` that is not a shape.
        DimensionError: Not one coordinate per dim, or an int out of range.

    Example:
        >>> ravel_index((1, -1), (3, 4))
        7
    """
    shape = expect_shape("shape", shape)
    places = items_of(index)
    if places is None:
        raise ArgumentError(
            f"`index` {shown(index)} must be a sequence, one coordinate per dim"
        )
    if len(places) != len(shape):
        raise DimensionError(
            f"`index` has {len(places)} coordinates, but `shape` {shape} has {len(shape)} dims"
        )
    flat = 0
    for dim, (coordinate, n) in enumerate(zip(places, shape, strict=True)):
        if isinstance(coordinate, Tensor):
            return _ravel_tensors(places, shape)
        place = whole_number("index", coordinate)
        if not -n <= place < n:
            raise DimensionError(
                f"`index` {places}: {place} is out of range at dim {dim} of `shape` {shape}"
            )
        flat = flat * n + place % n
    return flat


def _ravel_tensors(index: tuple[Any, ...], shape: tuple[int, ...]) -> Tensor:
    flat, inside = torch.as_tensor(0), torch.as_tensor(True)
    for dim, (coordinate, n) in enumerate(zip(index, shape, strict=True)):
        place = (
            coordinate
            if isinstance(coordinate, Tensor)
            else torch.as_tensor(whole_number("index", coordinate))
        )
        if place.dtype.is_floating_point or place.dtype.is_complex or place.dtype is torch.bool:
            raise ArgumentError(
                f"`index` at dim {dim} is {place.dtype}: coordinates are integers"
            )
        ends = zip(reversed(place.shape), reversed(flat.shape), strict=False)
        if any(a != b and 1 not in (a, b) for a, b in ends):
            raise ArgumentError(
                f"`index` at dim {dim} has the shape {tuple(place.shape)}, which does not "
                f"broadcast with {tuple(flat.shape)}, the shape of those before"
            )
        # int64, because the flat index of a large grid overflows int32 coordinates.
        place = place.long()
        inside = inside & (place >= -n) & (place < n)
        flat = flat * n + torch.where(place < 0, place + n, place)
    return torch.where(inside, flat, prod(shape))
