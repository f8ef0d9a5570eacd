"""The arguments of gemv and linear as callers give them, checked."""

from typing import Any

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.kernels.tune import expect_array

_FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


def check_product(weight: Any, x: Any, scale: Any) -> None:
    """Raise unless `weight` `[rows, cols]` can be multiplied with `x` `[..., cols]`."""
    expect_array("weight", weight)
    expect_array("x", x)
    if weight.ndim != 2:
        raise ArgumentError(
            f"`weight` must be a matrix `[rows, cols]`, got shape {tuple(weight.shape)}"
        )
    if x.ndim < 1 or x.shape[-1] != weight.shape[1]:
        raise ArgumentError(
            f"`x` of shape {tuple(x.shape)} must end with {weight.shape[1]}, the columns of "
            f"`weight` of shape {tuple(weight.shape)}"
        )
    if x.device != weight.device:
        raise ArgumentError(f"`x` is on {x.device} and `weight` on {weight.device}")
    if x.dtype not in _FLOATS:
        raise ArgumentError(f"`x` is {x.dtype}; expected {_listed(_FLOATS)}")
    if weight.dtype not in (*_FLOATS, torch.int8):
        raise ArgumentError(
            f"`weight` is {weight.dtype}; expected {_listed((*_FLOATS, torch.int8))}"
        )
    _check_scale(weight, scale)


def _check_scale(weight: Tensor, scale: Any) -> None:
    if weight.dtype != torch.int8:
        if scale is not None:
            raise ArgumentError(f"`scale` belongs to int8 weights; `weight` is {weight.dtype}")
        return
    if (
        isinstance(scale, Tensor)
        and scale.shape == weight.shape[:1]
        and scale.device == weight.device
        and scale.is_floating_point()
    ):
        return
    got = "None" if scale is None else type(scale).__name__
    if isinstance(scale, Tensor):
        got = f"{scale.dtype} {tuple(scale.shape)} on {scale.device}"
    raise ArgumentError(
        f"`scale` of int8 weights must be a floating tensor of shape ({weight.shape[0]},) on "
        f"{weight.device}, got {got}"
    )


def check_bias(bias: Any, weight: Tensor) -> None:
    """Raise unless `bias` is None or has one number for each row, where the weight is."""
    if bias is None:
        return
    if not isinstance(bias, Tensor) or bias.shape != weight.shape[:1]:
        got = tuple(bias.shape) if isinstance(bias, Tensor) else type(bias).__name__
        raise ArgumentError(
            f"`bias` must be None or a tensor of shape ({weight.shape[0]},), got {got}"
        )
    expect_array("bias", bias)
    if not bias.is_floating_point():
        raise ArgumentError(f"`bias` is {bias.dtype}; expected a floating type")
    if bias.device != weight.device:
        raise ArgumentError(f"`bias` is on {bias.device} and `weight` on {weight.device}")


def _listed(dtypes: tuple[torch.dtype, ...]) -> str:
    return ", ".join(str(each).removeprefix("torch.") for each in dtypes)
