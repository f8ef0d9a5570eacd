"""The arguments of top-k as callers give them, checked."""

from typing import Any, SupportsIndex

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.kernels.tune import expect_array
from hotgrid.tensors import expect_dim

_ORDERED = (
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.bool),
    *(torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.uint8, torch.uint16, torch.uint32, torch.uint64),
)


def checked_arguments(
    x: Any, k: SupportsIndex, dim: SupportsIndex, largest: bool, sorted: bool
) -> tuple[Tensor, int, int, bool, bool]:
    """Return the arguments as candidates take them, `dim` counted from the front."""
    expect_array("x", x)
    rank = x.ndim
    # Every call passes here: the usual case is decided without another function call.
    dim = dim % rank if type(dim) is int and -rank <= dim < rank else expect_dim(x, dim)
    if type(k) is not int:
        k = _whole(k)
    size = x.shape[dim]
    # Where sizes are open, the operator looks again when it is called.
    known = type(k) is int and type(size) is int
    if known and not 0 <= k <= size and not torch.compiler.is_compiling():
        raise ArgumentError(
            f"`k` is {k}; expected 0 to {size}, the size of dim {dim} of `x` "
            f"with shape {tuple(x.shape)}"
        )
    if x.dtype not in _ORDERED:
        known = ", ".join(str(each).removeprefix("torch.") for each in _ORDERED)
        raise ArgumentError(f"`x` is {x.dtype}, which torch does not order; it orders {known}")
    if type(largest) is not bool or type(sorted) is not bool:
        name, flag = ("sorted", sorted) if type(largest) is bool else ("largest", largest)
        raise ArgumentError(f"`{name}` must be True or False, got {flag!r}")
    return x, k, dim, largest, sorted


def _whole(k: SupportsIndex) -> int:
    if isinstance(k, torch.SymInt):
        return k  # pyright: ignore[reportReturnType]
    try:
        if isinstance(k, bool):
            raise TypeError
        return k.__index__()
    except (TypeError, AttributeError):
        raise ArgumentError(f"`k` must be a whole number, got {k!r}") from None
