"""Gemv in torch's library: for compilers and transforms, which need more than a result."""

from typing import Any

from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.kernels.tune import operator_of

from ._arguments import check_product
from ._op import tuned_gemv
from ._short import short_product


def multiplied(weight: Tensor, x: Tensor, scale: Tensor | None) -> Tensor:
    """Compute it; a sum of nothing is zero."""
    if weight.numel() == 0 or x.numel() == 0:
        return x.new_zeros((x.shape[0], weight.shape[0]))
    return tuned_gemv(weight, x, scale)


def _check(weight: Tensor, x: Tensor, scale: Tensor | None) -> None:
    check_product(weight, x, scale)
    if x.ndim != 2:
        raise ArgumentError(f"`x` must be `[count, cols]`, got shape {tuple(x.shape)}")


def _called(weight: Tensor, x: Tensor, scale: Tensor | None) -> Tensor:
    # Who calls the operator by its name has not come along the checks of `gemv`.
    _check(weight, x, scale)
    y = multiplied(weight, x, scale)
    keep_short(weight, x, x, scale)
    return y


def keep_short(weight: Tensor, x: Tensor, vectors: Tensor, scale: Tensor | None) -> None:
    """Let calls like one that was computed take the short way.

    Args:
        weight: `[rows, cols]`.
        x: `[cols]` or `[count, cols]`, what the caller gave.
        vectors: `[count, cols]`, what was made of it.
        scale: `[rows]` or None.
    """
    front, given = "gemv", (weight, x)
    if scale is not None:
        front, given = "scaled", (weight, x, scale)
    arguments, alone = (weight, vectors, scale), x.ndim == 1
    made = lambda function: short_product(function, *arguments, alone=alone)
    tuned_gemv.keep_shortcut(front, given, arguments, made)


def quick_product(weight: Tensor, x: Tensor, scale: Tensor | None) -> Tensor | None:
    """Compute it like an earlier call, or return None if there was none or more is wanted."""
    if scale is None:
        short = tuned_gemv.shortcut("gemv", weight, x)
        return None if short is None else short(weight, x)
    short = tuned_gemv.shortcut("scaled", weight, x, scale)
    return None if short is None else short(weight, x, scale)


def _quick(weight: Tensor, x: Tensor, scale: Tensor | None) -> Tensor | None:
    return quick_product(weight, x, scale) if x.ndim == 2 else None


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
    "gemv",
    "(Tensor weight, Tensor x, Tensor? scale) -> Tensor",
    _called,
    check=_check,
    fake=fake,
    differentiate=_differentiate,
    remember=_remember,
    vectorised=_vectorised,
    quick=_quick,
)
"""`torch.ops.hotgrid.gemv`; its `x` is `[count, cols]`."""
