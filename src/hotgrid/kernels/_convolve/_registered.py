"""Convolve in torch's library: for compilers and for gradients."""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import torch
from torch import Tensor

from hotgrid.kernels.tune import autocast_type, operator_of

from ._arguments import checked_grids
from ._extended import extended, rest, seen_at, widened
from ._op import tuned_convolve

# As many weights get their derivative by a sum over all cells each; more, by a transform.
_FEW = 32


def correlated(x: Tensor, kernel: Tensor, before: tuple[int, ...], periodic: bool) -> Tensor:
    """Compute it, in the type of `x` also under autocast."""
    if x.numel() == 0:
        return fake(x, kernel, before, periodic)
    if autocast_type(x) is None:
        return tuned_convolve(x, kernel, before, periodic)
    with torch.autocast(x.device.type, enabled=False):
        return tuned_convolve(x, kernel, before, periodic)


def fake(x: Tensor, kernel: Tensor, before: Sequence[int], periodic: bool) -> Tensor:
    """Only the shape: that of `x`."""
    return x.new_empty(x.shape)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, kernel, ctx.before, ctx.periodic = inputs
    ctx.save_for_backward(x, kernel)


def _differentiate(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    x, kernel = ctx.saved_tensors
    to_x = to_kernel = None
    if ctx.needs_input_grad[0]:
        # A cell was seen from where the kernel, turned around, looks.
        turned = kernel.flip(tuple(range(kernel.ndim)))
        to_x = operator(gradient, turned, rest(kernel, ctx.before), ctx.periodic)
    if ctx.needs_input_grad[1]:
        to_kernel = _weights_gradient(x, kernel, gradient, ctx.before, ctx.periodic)
    return to_x, to_kernel, None, None


def _weights_gradient(
    x: Tensor, kernel: Tensor, gradient: Tensor, before: Sequence[int], periodic: bool
) -> Tensor:
    """For each weight, the sum over all cells of the gradient times what the weight saw."""
    cells, factors = widened(x, gradient)
    cells = extended(cells, before, rest(kernel, before), periodic)
    if kernel.numel() > _FEW:
        dims = tuple(range(1, x.ndim))
        lengths = cells.shape[1:]
        # Scaled before, so that no spectrum is larger than the cells.
        spectrum = torch.fft.rfftn(cells * (1 / prod(lengths)), dim=dims)
        # With the margin included no needed cell wraps around.
        other = torch.fft.rfftn(factors, lengths, dims)
        both = (spectrum * other.conj().resolve_conj()).sum(0)
        sums = torch.fft.irfftn(both, lengths, norm="forward")
        for dim, k in enumerate(kernel.shape):
            sums = sums.narrow(dim, 0, k)
        return sums.to(kernel.dtype)
    each = [
        (seen_at(cells, index, x.shape[1:]) * factors).sum()
        for index in product(*map(range, kernel.shape))
    ]
    return torch.stack(each).reshape(kernel.shape).to(kernel.dtype)


def _vectorised(
    info: Any,
    dims: tuple[int | None, ...],
    x: Tensor,
    kernel: Tensor,
    before: Sequence[int],
    periodic: bool,
) -> tuple[Tensor, int]:
    if dims[1] is None:
        grids = x.movedim(dims[0] or 0, 0)
        found = operator(grids.flatten(0, 1), kernel, before, periodic)
        return found.unflatten(0, grids.shape[:2]), 0
    kernels = kernel.movedim(dims[1], 0)
    grids = [x] * len(kernels) if dims[0] is None else x.movedim(dims[0], 0)
    each = [
        operator(one, weights, before, periodic)
        for one, weights in zip(grids, kernels, strict=True)
    ]
    return torch.stack(each), 0


operator: Any = operator_of(
    tuned_convolve,
    "(Tensor x, Tensor kernel, SymInt[] before, bool periodic) -> Tensor",
    correlated,
    check=checked_grids,
    fake=fake,
    differentiate=_differentiate,
    remember=_remember,
    vectorised=_vectorised,
)
"""`torch.ops.hotgrid.convolve`; its `x` is `[count, *space]`."""
