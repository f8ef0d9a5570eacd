"""The transforms as functions of the images alone, for later calls like one computed."""

from collections.abc import Callable
from math import prod

import torch
from torch import Tensor

from ._tensor import INVERSE_TORCH, TORCH

Transform = Callable[[Tensor], Tensor]


def short_transform(function: Callable[..., Tensor], x: Tensor, norm: str) -> Transform:
    """Return what `rfft2` does with images like `x`, given the function of a candidate."""
    if function is TORCH.function:
        if norm == "backward":  # what torch does unasked, and sooner
            return lambda x: torch.fft.rfft2(x).contiguous()
        return lambda x: torch.fft.rfft2(x, norm=norm).contiguous()
    return _of_any_rank(x, lambda planes: function(planes, norm))


def short_inverse(
    function: Callable[..., Tensor], x: Tensor, width: int, norm: str
) -> Transform:
    """Return the same of `irfft2`; the images are as high as their spectra."""
    if function is INVERSE_TORCH.function:
        size = (x.shape[-2], width)
        if norm == "backward":
            return lambda x: torch.fft.irfft2(x, size).contiguous()
        return lambda x: torch.fft.irfft2(x, size, norm=norm).contiguous()
    return _of_any_rank(x, lambda planes: function(planes, width, norm))


def _of_any_rank(x: Tensor, run: Transform) -> Transform:
    """Make it a function of `[..., h, w]` instead of `[count, h, w]`."""
    if x.ndim == 3:
        return run
    others, flat = x.shape[:-2], (prod(x.shape[:-2]), *x.shape[-2:])
    return lambda x: run(x.reshape(flat)).unflatten(0, others) if others else run(x[None])[0]
