"""Top-k in torch's library, for compilers and transforms."""

from typing import Any

import torch
from torch import Tensor

from hotgrid.kernels.tune import operator_of

from ._arguments import checked_arguments
from ._op import tuned_topk


def selected(x: Tensor, k: int, dim: int, largest: bool, sorted: bool) -> tuple[Tensor, Tensor]:
    """Compute it; an empty result needs no candidate."""
    if k == 0 or x.numel() == 0:
        return fake(x, k, dim, largest, sorted)
    return tuned_topk(x, k, dim, largest, sorted)


def fake(x: Tensor, k: int, dim: int, largest: bool, sorted: bool) -> tuple[Tensor, Tensor]:
    """Only the shape: `dim` becomes k."""
    shape = list(x.shape)
    shape[dim] = k
    return x.new_empty(shape), x.new_empty(shape, dtype=torch.int64)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, _, ctx.dim, _, _ = inputs
    ctx.shape = x.shape
    ctx.save_for_backward(output[1])
    ctx.mark_non_differentiable(output[1])


def _differentiate(ctx: Any, gradient: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
    (indices,) = ctx.saved_tensors
    spread = gradient.new_zeros(ctx.shape).scatter(ctx.dim, indices, gradient)
    return spread, None, None, None, None


def _vectorised(
    info: Any, dims: tuple[int | None, ...], x: Tensor, k: int, dim: int, *flags: bool
) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
    lines = x.movedim(dims[0] or 0, 0)
    return operator(lines, k, dim + 1 if dim >= 0 else dim, *flags), (0, 0)


operator: Any = operator_of(
    tuned_topk,
    "(Tensor x, SymInt k, int dim, bool largest, bool sorted) -> (Tensor, Tensor)",
    selected,
    check=checked_arguments,
    fake=fake,
    differentiate=_differentiate,
    remember=_remember,
    vectorised=_vectorised,
)
"""`torch.ops.hotgrid.topk`."""
