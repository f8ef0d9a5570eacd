"""`Draws`: all random numbers of a run come from one generator on its device."""

import torch
from torch import Tensor

from hotgrid.grid.model import checked_device


class Draws:
    """Random numbers from a generator whose state is part of a checkpoint.

    Args:
        seed: The random seed.
        device: The device on which the numbers are made.

    Raises:
        ArgumentError: There is no such device here.

    Example:
        >>> Draws(0, "cpu").uniform(2, 3).shape
        torch.Size([2, 3])
    """

    def __init__(self, seed: int, device: torch.device | str) -> None:
        self.device = checked_device(device)
        self.generator = torch.Generator(self.device)
        self.generator.manual_seed(seed)

    def uniform(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return uniform numbers from 0 to below 1."""
        return torch.rand(shape, generator=self.generator, device=self.device, dtype=dtype)

    def normal(self, *shape: int) -> Tensor:
        """Return numbers with a mean of zero and a variance of one."""
        return torch.randn(shape, generator=self.generator, device=self.device)

    def below(self, count: Tensor | int, *shape: int) -> Tensor:
        """Return whole numbers from 0, below a count that may be on the device."""
        # In double precision: a float does not have enough digits for a large ring.
        found = self.uniform(*shape, dtype=torch.float64) * count
        return found.to(torch.int64)
