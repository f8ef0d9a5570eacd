"""The product with a coded matrix in torch's library, for compilers and gradients."""

from typing import Any

from torch import Tensor

from hotgrid.kernels.tune import operator_of

from ._arguments import checked_parts
from ._coded import Coded
from ._op import tuned_codebook

# int8, int4 and ids have a code for each row; sub-vectors only a scale.
_ROWS_IN_CODES = ("int8", "int4", "rows")


def multiplied(form: str, x: Tensor, *parts: Any) -> Tensor:
    """Compute it; an empty sum is zero."""
    if x.numel() == 0:
        checked_parts(form, x, *parts)
        return _fake(form, x, *parts).zero_()
    return tuned_codebook(form, x, *parts)


def _checked(form: str, x: Tensor, *parts: Any) -> tuple[Any, ...]:
    checked_parts(form, x, *parts)
    return form, x, *parts


def _fake(form: str, x: Tensor, codes: Tensor, scale: Tensor, *others: object) -> Tensor:
    """Only the shape: `[count, rows]`."""
    rows = codes.shape[0] if form in _ROWS_IN_CODES else scale.shape[0]
    return x.new_empty((x.shape[0], rows))


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.form, x, *parts = inputs
    ctx.cols = x.shape[1]
    ctx.save_for_backward(*parts)


def _differentiate(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    coded = Coded(ctx.form, ctx.cols, *ctx.saved_tensors)
    to_x = gradient @ coded.decoded().to(gradient.dtype)
    return None, to_x, None, None, None, None


def _vectorised(
    info: Any, dims: tuple[int | None, ...], form: str, x: Tensor, *parts: Tensor | None
) -> tuple[Tensor, int]:
    several = x.movedim(dims[1] or 0, 0)
    flat = operator(form, several.reshape(-1, several.shape[-1]), *parts)
    return flat.reshape(*several.shape[:-1], -1), 0


operator: Any = operator_of(
    tuned_codebook,
    "(str form, Tensor x, Tensor codes, Tensor scale, Tensor? table, Tensor? signs) -> Tensor",
    multiplied,
    check=_checked,
    fake=_fake,
    differentiate=_differentiate,
    remember=_remember,
    vectorised=_vectorised,
)
"""`torch.ops.hotgrid.codebook`; its `x` is `[count, cols]`."""
