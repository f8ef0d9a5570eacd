"""A rotation that spreads outliers: random signs, then a Hadamard matrix on blocks."""

import torch
from torch import Tensor


def block_size(cols: int) -> int:
    """Return the largest power of two that divides the columns."""
    return cols & -cols


def rotated(x: Tensor, signs: Tensor) -> Tensor:
    """Rotate the last dimension of `x`, `[..., cols]`; lengths stay as they are."""
    return _butterflies(x * signs.to(x.dtype))


def unrotated(x: Tensor, signs: Tensor) -> Tensor:
    """Undo `rotated`. What is rotated on both sides of a product leaves it as it was."""
    return _butterflies(x) * signs.to(x.dtype)


def _butterflies(x: Tensor) -> Tensor:
    block, half = block_size(x.shape[-1]), 1
    shape = x.shape
    while half < block:
        pairs = x.reshape(*shape[:-1], -1, 2, half)
        a, b = pairs.unbind(-2)
        x = torch.stack([a + b, a - b], -2).reshape(shape)
        half *= 2
    return x * block**-0.5
