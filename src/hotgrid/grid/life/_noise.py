"""Noise: cells that flip at random, with random numbers in the state.

Every cell has a random number of its own, a part of the state, and every step makes the
next one from it alone. So a step stays a pure function, and a run has the same bits in
any form, on any device, and after it was saved.
"""

import torch
from torch import Tensor

_CHOICES = 1 << 32


def numbers_that_flip(probability: float) -> int:
    """How many of the 2^32 numbers flip a cell."""
    return round(probability * _CHOICES)


def flipped(cells: Tensor, random: Tensor, count: int) -> Tensor:
    """The cells, uint8, with those turned over whose number is among the lowest `count`."""
    return cells ^ (random <= count - 1 - _CHOICES // 2).to(torch.uint8)
