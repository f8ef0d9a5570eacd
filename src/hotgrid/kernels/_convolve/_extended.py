"""Cells with a margin around them, so that every window is whole; and kernels folded."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

HALVES = (torch.float16, torch.bfloat16)
"""Types in which nothing is summed."""


def extended(x: Tensor, before: Sequence[int], after: Sequence[int], periodic: bool) -> Tensor:
    """Return `x` extended by a number of cells before and after each of its last dims.

    On a torus they are those of the other end, and not more than there are; else zeros.
    """
    if not periodic:
        pairs = zip(reversed(before), reversed(after), strict=True)
        return F.pad(x, [width for pair in pairs for width in pair])
    for dim, b, a in zip(range(-len(before), 0), before, after, strict=True):
        if b or a:
            n = x.shape[dim]
            x = torch.cat([x.narrow(dim, n - b, b), x, x.narrow(dim, 0, a)], dim)
    return x


def seen_at(cells: Tensor, index: Sequence[int], space: Sequence[int]) -> Tensor:
    """Return the cells that one weight of the kernel sees, from cells with their margin."""
    for dim, (first, n) in enumerate(zip(index, space, strict=True), 1):
        cells = cells.narrow(dim, first, n)
    return cells


def folded(
    kernel: Tensor, before: Sequence[int], space: Sequence[int]
) -> tuple[Tensor, tuple[int, ...]]:
    """Return a kernel that is no larger than its torus, and does the same there.

    Weights of one and the same cell, seen several times around, are added: in double
    precision, since candidates and their reference see only what has become of them.
    """
    start, weights = list(before), kernel.double()
    for dim, n in enumerate(space):
        k = weights.shape[dim]
        if k > n:
            at = (torch.arange(k, device=kernel.device) - start[dim]) % n
            shape = [*weights.shape[:dim], n, *weights.shape[dim + 1 :]]
            weights = weights.new_zeros(shape).index_add(dim, at, weights)
            start[dim] = 0
    return weights.to(kernel.dtype), tuple(start)


def rest(kernel: Tensor, before: Sequence[int]) -> list[int]:
    """Return how many cells a kernel reaches ahead in each dim."""
    return [k - 1 - b for k, b in zip(kernel.shape, before, strict=True)]


def widened(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return half-precision numbers as f32, in which they are summed."""
    half = tensors[0].dtype in HALVES
    return tuple([each.float() for each in tensors]) if half else tensors
