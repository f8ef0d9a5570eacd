"""Random numbers in the state: every cell has one, and makes the next from it alone.

So a step stays a pure function, and a run has the same bits in any form, on any device, and
after it was saved.
"""

import torch
from torch import Tensor

from ._window import drawn


def random_numbers(size: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Random numbers to begin with, int32 `[*space]`, none of them 0."""
    low, high = torch.iinfo(torch.int32).min, torch.iinfo(torch.int32).max

    def draw(shape: tuple[int, ...]) -> Tensor:
        return torch.randint(low, high, shape, generator=generator, dtype=torch.int32)

    found = drawn(size, draw)
    # The largest number is not drawn above, so that 0 can be skipped.
    return found + (found >= 0)


def uniform(
    size: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Random numbers between 0 and 1, `[*space]`; of a window those of the whole grid."""
    return drawn(size, lambda shape: torch.rand(shape, generator=generator, dtype=dtype))


def next_random(x: Tensor) -> Tensor:
    """The next random numbers, int32: Marsaglia's xorshift, which visits every number but 0.

    Without a product: that of two int32 overflows, which C++ does not define.
    """
    x = x ^ (x << 13)
    x = x ^ ((x >> 17) & 0x7FFF)  # a shift to the right copies the sign
    return x ^ (x << 5)
