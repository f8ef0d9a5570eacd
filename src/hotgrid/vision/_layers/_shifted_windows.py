"""Attention in shifted windows as operators of torch, which compilers leave whole."""

import importlib.util
from typing import Any

import torch
from torch import Tensor

_MOST_TOKENS = 64  # scores of more do not fit into the registers of a program
_TRITON = importlib.util.find_spec("triton") is not None


def kernel_fits(x: Tensor, window: int, size: int) -> bool:
    """Return whether `attend_shifted` takes a map with such windows and heads of this size.

    It is for CUDA with Triton, windows of up to 64 tokens, and heads whose size is a power of
    two from 16 on.
    """
    fits = window**2 <= _MOST_TOKENS and size >= 16 and size & (size - 1) == 0
    return fits and _TRITON and x.is_cuda and x.dtype != torch.float64


@torch.library.custom_op("hotgrid::attend_shifted", mutates_args=())
def attend_shifted(qkv: Tensor, bias: Tensor, side: int, shift: int, scale: float) -> Tensor:
    """Attend in the windows of a map that is shifted up and left; it comes back unshifted.

    Args:
        qkv: `batch height width (3 heads size)`.
        bias: Added to the scores of a head, `heads tokens tokens`.
        side: Height and width of a window.
        shift: How far the map is shifted. Tokens that only this brings together do not see
            each other.
        scale: The factor of the scores.
    """
    from ._triton_windows import attend_forward

    return attend_forward(qkv.contiguous(), bias.contiguous(), side, shift, scale)


@torch.library.custom_op("hotgrid::attend_shifted_backward", mutates_args=())
def attend_shifted_backward(
    grad: Tensor, qkv: Tensor, bias: Tensor, side: int, shift: int, scale: float
) -> tuple[Tensor, Tensor]:
    """Return the gradients of `qkv` and `bias`."""
    from ._triton_windows import attend_backward

    grad, qkv, bias = grad.contiguous(), qkv.contiguous(), bias.contiguous()
    return attend_backward(grad, qkv, bias, side, shift, scale)


@attend_shifted.register_fake
def _(qkv: Tensor, bias: Tensor, side: int, shift: int, scale: float) -> Tensor:
    return qkv.new_empty(*qkv.shape[:3], qkv.shape[3] // 3)


@attend_shifted_backward.register_fake
def _(
    grad: Tensor, qkv: Tensor, bias: Tensor, side: int, shift: int, scale: float
) -> tuple[Tensor, Tensor]:
    return qkv.new_empty(qkv.shape), bias.new_empty(bias.shape)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:2])
    ctx.numbers = inputs[2:]


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    found = attend_shifted_backward(grad, *ctx.saved_tensors, *ctx.numbers)
    return *found, None, None, None


attend_shifted.register_autograd(_differentiate, setup_context=_remember)
