"""The transforms of real images in torch's library: for compilers and for gradients.

Both are linear, and each is the other's transpose but for a factor: a half spectrum stores
one of two mirror images, and the first column and the middle one have none.
"""

from typing import Any

import torch
from torch import Tensor

from hotgrid.kernels.tune import autocast_type, operator_of

from ._arguments import check_images, check_spectra
from ._op import tuned_irfft2, tuned_rfft2

_TRANSPOSED = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def transformed_images(x: Tensor, norm: str) -> Tensor:
    """Compute half spectra, none of none, in the type of `x` also under autocast."""
    if x.numel() == 0:
        return fake(x, norm)
    if autocast_type(x) is None:
        return tuned_rfft2(x, norm)
    with torch.autocast(x.device.type, enabled=False):
        return tuned_rfft2(x, norm)


def restored_images(x: Tensor, width: int, norm: str) -> Tensor:
    """Compute images, none of none, in the type of `x` also under autocast."""
    if x.numel() == 0:
        return fake_inverse(x, width, norm)
    if autocast_type(x) is None:
        return tuned_irfft2(x, width, norm)
    with torch.autocast(x.device.type, enabled=False):
        return tuned_irfft2(x, width, norm)


def _called(x: Tensor, norm: str) -> Tensor:
    # Who calls the operator by its name has not come along the checks of `rfft2`.
    check_images(x, norm)
    return transformed_images(x, norm)


def _inverse_called(x: Tensor, width: int, norm: str) -> Tensor:
    check_spectra(x, width, norm)
    return restored_images(x, width, norm)


def fake(x: Tensor, norm: str) -> Tensor:
    """Only the shape: `[count, height, width // 2 + 1]`."""
    shape = (*x.shape[:-1], x.shape[-1] // 2 + 1)
    return x.new_empty(shape, dtype=x.dtype.to_complex())


def fake_inverse(x: Tensor, width: int, norm: str) -> Tensor:
    """Only the shape: `[count, height, width]`."""
    return x.new_empty((*x.shape[:-1], width), dtype=x.dtype.to_real())


def _mirrored(width: int, once: float, twice: float, like: Tensor) -> Tensor:
    """One factor for columns that stand for themselves, one for those with a mirror image."""
    column = torch.arange(width // 2 + 1, device=like.device)
    alone = (column == 0) | (2 * column == width)
    real = like.dtype.to_real() if like.is_complex() else like.dtype
    return torch.where(alone, once, twice).to(real)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, ctx.norm = inputs
    ctx.width = x.shape[-1]


def _differentiate(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    once = gradient * _mirrored(ctx.width, 1.0, 0.5, gradient)
    return inverse_operator(once, ctx.width, _TRANSPOSED[ctx.norm]), None


def _remember_inverse(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, ctx.width, ctx.norm = inputs


def _differentiate_inverse(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    spectra = operator(gradient, _TRANSPOSED[ctx.norm])
    return spectra * _mirrored(ctx.width, 1.0, 2.0, gradient), None, None


def _vectorised(
    info: Any, dims: tuple[int | None, ...], x: Tensor, norm: str
) -> tuple[Tensor, int]:
    images = x.movedim(dims[0] or 0, 0)
    return operator(images.flatten(0, 1), norm).unflatten(0, images.shape[:2]), 0


def _vectorised_inverse(
    info: Any, dims: tuple[int | None, ...], x: Tensor, width: int, norm: str
) -> tuple[Tensor, int]:
    spectra = x.movedim(dims[0] or 0, 0)
    found = inverse_operator(spectra.flatten(0, 1), width, norm)
    return found.unflatten(0, spectra.shape[:2]), 0


operator: Any = operator_of(
    "rfft2",
    "(Tensor x, str norm) -> Tensor",
    _called,
    check=check_images,
    fake=fake,
    differentiate=_differentiate,
    remember=_remember,
    vectorised=_vectorised,
)
"""`torch.ops.hotgrid.rfft2`, of `[count, height, width]`."""

inverse_operator: Any = operator_of(
    "irfft2",
    "(Tensor x, SymInt width, str norm) -> Tensor",
    _inverse_called,
    check=check_spectra,
    fake=fake_inverse,
    differentiate=_differentiate_inverse,
    remember=_remember_inverse,
    vectorised=_vectorised_inverse,
)
"""`torch.ops.hotgrid.irfft2`, of `[count, height, width // 2 + 1]`."""
