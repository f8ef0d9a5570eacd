"""Coordinates of a grid as one tensor."""

from typing import SupportsIndex

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError

from ._arguments import expect_tensor
from ._dims import expect_dim


def meshgrid_stack(*axes: Tensor, dim: SupportsIndex = 0) -> Tensor:
    """Return the coordinates of every cell of a grid, stacked into one tensor.

    `meshgrid_stack(ys, xs)[:, i, j] == (ys[i], xs[j])`: matrix ("ij") order, so the
    space dims come in the order of the axes.

    Args:
        *axes: `[n_0]`, `[n_1]`, ...: the coordinates along each space dim, of one
            dtype on one device.
        dim: The position of the coordinate dim: usually 0 (first) or -1 (last).

    Returns:
        `[rank, n_0, n_1, ...]`, or with `dim=-1` `[n_0, n_1, ..., rank]`.

    Raises:
        ArgumentError: No axis, an axis that is not a 1-D tensor, or mixed dtypes or devices.
        DimensionError: The result has no such `dim`.

    Example:
        >>> meshgrid_stack(torch.arange(2), torch.arange(3)).shape
        torch.Size([2, 2, 3])
    """
    if not axes:
        raise ArgumentError("meshgrid_stack() needs at least one axis")
    for place, axis in enumerate(axes):
        expect_tensor(f"axis {place}", axis)
        if axis.ndim != 1:
            raise ArgumentError(f"axis {place} must be 1-D; its shape is {tuple(axis.shape)}")
        if (axis.dtype, axis.device) != (axes[0].dtype, axes[0].device):
            raise ArgumentError(
                f"axis {place} is {axis.dtype} on {axis.device}, axis 0 is {axes[0].dtype} on "
                f"{axes[0].device}: convert them with `.to(...)`"
            )
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), expect_dim(len(axes) + 1, dim))
