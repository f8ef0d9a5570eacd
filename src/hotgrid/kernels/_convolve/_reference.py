"""The oracle of convolve: each weight times the neighbour it is for, in double precision."""

from itertools import product

import torch
from torch import Tensor

from hotgrid.tensors import shift


def reference(x: Tensor, kernel: Tensor, before: tuple[int, ...], periodic: bool) -> Tensor:
    """Return the sum of `kernel[j]` times the cells of `x` at the offset `j - before`."""
    cells, weights = x.double(), kernel.double()
    total = torch.zeros_like(cells, memory_format=torch.contiguous_format)
    for index in product(*map(range, kernel.shape)):
        offset = [j - b for j, b in zip(index, before, strict=True)]
        seen = shift(cells, offset, boundary="periodic" if periodic else 0.0)
        total += weights[index] * seen
    return total.to(x.dtype)
