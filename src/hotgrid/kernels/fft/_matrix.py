"""Tiny images by one matrix product: more arithmetic than a fast transform, but all dense."""

import math

import torch
from torch import Tensor

from hotgrid.kernels.tune import Call, Candidate

# The matrix is made anew for each call and has more than the square of it.
_MOST_NUMBERS = 256


def _matrix(x: Tensor, norm: str) -> Tensor:
    count, height, width = x.shape
    across = _waves(height, height, norm, "forward", x, -1)
    along = _waves(width, width // 2 + 1, norm, "forward", x, -1)
    # [height, width, height, half], what each number adds to each of the spectrum.
    both = across[:, None, :, None] * along[None, :, None, :]
    table = torch.view_as_real(both).to(x.dtype).reshape(height * width, -1)
    found = (x.reshape(count, -1) @ table).view(count, height, -1, 2)
    return torch.view_as_complex(found)


def _inverse_matrix(x: Tensor, width: int, norm: str) -> Tensor:
    count, height, half = x.shape
    across = _waves(height, height, norm, "backward", x)
    along = _waves(width, half, norm, "backward", x).T
    # What is not stored is the mirror image of what is: all but the first and the middle.
    alone = torch.arange(half, device=x.device)[:, None] * 2 % width == 0
    along = along * torch.where(alone, 1.0, 2.0)
    both = across[:, None, :, None] * along[None, :, None, :]
    parts = torch.stack([both.real, -both.imag], 2)
    table = parts.to(x.dtype.to_real()).reshape(-1, height * width)
    numbers = torch.view_as_real(x.resolve_conj()).reshape(count, -1)
    return (numbers @ table).view(count, height, width)


def _waves(
    length: int, count: int, norm: str, scaled: str, like: Tensor, sense: int = 1
) -> Tensor:
    """The first waves over so many numbers, `[length, count]`, scaled as `norm` has it."""
    i = torch.arange(length, device=like.device)[:, None]
    j = torch.arange(count, device=like.device)
    size = {"ortho": length**-0.5, scaled: 1 / length}.get(norm, 1.0)
    # Whole turns are left out before they can cost digits.
    turns = (i * j % length).double() * (sense * 2 * math.pi / length)
    return torch.polar(torch.full_like(turns, size), turns)


def _applies(call: Call) -> bool:
    exact = call.device.type == "cpu" or torch.get_float32_matmul_precision() == "highest"
    return exact and call.sizes["height"] * call.sizes["width"] <= _MOST_NUMBERS


MATRIX = Candidate(name="matrix", function=_matrix, applies=_applies)
INVERSE_MATRIX = Candidate(name="matrix", function=_inverse_matrix, applies=_applies)
