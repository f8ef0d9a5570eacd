"""Gemv in torch's library, for compilers and transforms."""

from typing import Any

from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.kernels.tune import operator_of

from ._arguments import check_product
from ._op import tuned_gemv


def multiplied(weight: Tensor, x: Tensor, scale: Tensor | None) -> Tensor:
    """Compute it; a sum of nothing is zero."""
    if weight.numel() == 0 or x.numel() == 0:
        return x.new_zeros((x.shape[0], weight.shape[0]))
    return tuned_gemv(weight, x, scale)


def _checked(weight: Tensor, x: Tensor, scale: Tensor | None) -> tuple[Any, ...]:
    check_product(weight, x, scale)
    if x.ndim != 2:
        raise ArgumentError(f"`x` must be `[count, cols]`, got shape {tuple(x.shape)}")
    return weight, x, scale


def fake(weight: Tensor, x: Tensor, scale: Tensor | None) -> Tensor:
    """Only the shape: `[count, rows]`."""
    return x.new_empty((x.shape[0], weight.shape[0]))


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _differentiate(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    weight, x, scale = ctx.saved_tensors
    needs_weight, needs_x, needs_scale = ctx.needs_input_grad
    scaled = gradient if scale is None else gradient * scale.to(gradient.dtype)
    to_weight = to_x = to_scale = None
    if needs_x:
        to_x = scaled @ weight.to(gradient.dtype)
    if needs_weight:
        to_weight = (scaled.T @ x).to(weight.dtype)
    if needs_scale and scale is not None:
        plain = x @ weight.to(x.dtype).T
        to_scale = (gradient * plain).sum(0).to(scale.dtype)
    return to_weight, to_x, to_scale


def _vectorised(
    info: Any,
    dims: tuple[int | None, ...],
    weight: Tensor,
    x: Tensor,
    scale: Tensor | None,
) -> tuple[Tensor, int]:
    if dims[0] is None and dims[2] is None:
        several = x.movedim(dims[1] or 0, 0)
        flat = operator(weight, several.reshape(-1, several.shape[-1]), scale)
        return flat.reshape(*several.shape[:-1], -1), 0
    matrix, vectors = _front(weight, dims[0]), _front(x, dims[1])
    y = vectors @ matrix.to(vectors.dtype).mT
    if scale is not None:
        y = y * _front(scale, dims[2]).to(y.dtype).unsqueeze(-2)
    return y, 0


def _front(tensor: Tensor, dim: int | None) -> Tensor:
    return tensor if dim is None else tensor.movedim(dim, 0)


operator: Any = operator_of(
    tuned_gemv,
    "(Tensor weight, Tensor x, Tensor? scale) -> Tensor",
    multiplied,
    check=_checked,
    fake=fake,
    differentiate=_differentiate,
    remember=_remember,
    vectorised=_vectorised,
)
"""`torch.ops.hotgrid.gemv`; its `x` is `[count, cols]`."""
