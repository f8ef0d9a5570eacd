"""From a multi-index to the place in row-major memory."""

from collections.abc import Sequence
from math import prod
from typing import overload

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, DimensionError


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
        ArgumentError: A tensor of coordinates that is not integer.
        DimensionError: Not one coordinate per dim, or an int out of range.

    Example:
        >>> ravel_index((1, -1), (3, 4))
        7
    """
    if len(index) != len(shape):
        raise DimensionError(
            f"`index` has {len(index)} coordinates, but `shape` {tuple(shape)} has "
            f"{len(shape)} dims"
        )
    flat = 0
    for dim, (coordinate, n) in enumerate(zip(index, shape, strict=True)):
        if isinstance(coordinate, Tensor):
            return _ravel_tensors(index, shape)
        if not -n <= coordinate < n:
            raise DimensionError(
                f"`index` {tuple(index)}: {coordinate} is out of range at dim {dim} "
                f"of `shape` {tuple(shape)}"
            )
        flat = flat * n + coordinate % n
    return flat


def _ravel_tensors(index: Sequence[int] | Sequence[Tensor], shape: Sequence[int]) -> Tensor:
    flat, inside = torch.as_tensor(0), torch.as_tensor(True)
    for dim, (coordinate, n) in enumerate(zip(index, shape, strict=True)):
        place = torch.as_tensor(coordinate)
        if place.dtype.is_floating_point or place.dtype.is_complex or place.dtype is torch.bool:
            raise ArgumentError(
                f"`index` at dim {dim} is {place.dtype}: coordinates are integers"
            )
        # int64, because the flat index of a large grid overflows int32 coordinates.
        place = place.long()
        inside = inside & (place >= -n) & (place < n)
        flat = flat * n + torch.where(place < 0, place + n, place)
    return torch.where(inside, flat, prod(shape))
