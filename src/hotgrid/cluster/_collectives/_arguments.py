"""Checks of the arguments of collectives, with the same error on every rank."""

from collections.abc import Sequence

import torch
from torch import Tensor

from hotgrid.cluster._block import shares
from hotgrid.cluster._communicator import Communicator
from hotgrid.errors import ArgumentError, near

_COMPLEX = frozenset({torch.complex64, torch.complex128})
_FLOATS = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})
_INTS = frozenset({torch.uint8, torch.int8, torch.int32, torch.int64})
# What both gloo and nccl can do.
_DTYPES = {
    "sum": _INTS | _FLOATS | _COMPLEX,
    "mean": _FLOATS | _COMPLEX,
    "max": _INTS | _FLOATS | {torch.bool},
}


def expect_operands(x: Tensor, communicator: Communicator) -> None:
    """Raise unless a collective was given a tensor and ranks."""
    if not isinstance(x, Tensor):
        raise ArgumentError(f"`x` must be a tensor, got {x!r}; use `torch.tensor(...)`")
    if not isinstance(communicator, Communicator):
        raise ArgumentError(
            f"`communicator` must be a Communicator, got {communicator!r}; "
            "`hotgrid.cluster.world()` gives all ranks"
        )


def expect_op(x: Tensor, op: str, known: Sequence[str]) -> None:
    """Raise unless the operation is known and the dtype supports it."""
    if op not in known:
        raise ArgumentError(
            f"`op` {op!r} is unknown; it can be {', '.join(map(repr, known))}{near(op, known)}"
        )
    if x.dtype not in _DTYPES[op]:
        way = "take its `abs()` first" if x.is_complex() else "use `x.float()`"
        raise ArgumentError(f"the {op} over ranks of {x.dtype} is not defined; {way}")


def expect_rank(name: str, rank: int, communicator: Communicator) -> None:
    """Raise unless there is such a rank."""
    if not isinstance(rank, int) or not 0 <= rank < communicator.size:
        raise ArgumentError(
            f"`{name}` {rank!r} is not a rank: there are 0 to {communicator.size - 1}"
        )


def expect_sizes(name: str, sizes: Sequence[int], communicator: Communicator) -> None:
    """Raise unless there is a size for every rank."""
    if len(sizes) != communicator.size or any(size < 0 for size in sizes):
        raise ArgumentError(
            f"`{name}` {tuple(sizes)} must be {communicator.size} sizes, one for each rank, "
            "each 0 or more"
        )


def expected_cut(
    x: Tensor,
    dim: int,
    sizes: Sequence[int] | None,
    communicator: Communicator,
    name: str,
) -> Sequence[int]:
    """Return sizes along a dim that add up to it: those given, or shares of it."""
    if sizes is None:
        return shares(x.shape[dim], communicator.size)
    expect_sizes(name, sizes, communicator)
    if sum(sizes) != x.shape[dim]:
        raise ArgumentError(
            f"`{name}` {tuple(sizes)} add up to {sum(sizes)}, but dim {dim} of "
            f"{tuple(x.shape)} has {x.shape[dim]}"
        )
    return sizes
