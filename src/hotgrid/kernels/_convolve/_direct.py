"""Candidates that lay the kernel over every cell: the work grows with its weights."""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from hotgrid.kernels.tune import Call, Candidate, transformed

from ._extended import extended, rest, seen_at, widened

# A pass over all cells for each weight; with more of them the others have long won.
_MOST_SHIFTS = 128
# On a CPU torch takes seconds for a large kernel and one channel, too long to be timed.
_MOST_WINDOWS = 64
_CONVOLUTIONS: Any = (F.conv1d, F.conv2d, F.conv3d)


def by_windows(x: Tensor, kernel: Tensor, before: Sequence[int], periodic: bool) -> Tensor:
    """Return torch's convolution of cells with a margin; it has derivatives."""
    cells, weights = widened(x, kernel)
    cells = extended(cells, before, rest(kernel, before), periodic)
    run = _CONVOLUTIONS[kernel.ndim - 1]
    found = run(cells.unsqueeze(1), weights[None, None]).squeeze(1)
    return found.to(x.dtype).contiguous()


def _windows(x: Tensor, kernel: Tensor, before: Sequence[int], periodic: bool) -> Tensor:
    if x.device.type != "cuda" or not torch.backends.cudnn.is_available():
        return by_windows(x, kernel, before, periodic)
    # Left to itself cuDNN may round f32 to 10 bits, which is a setting of the process.
    cells = extended(x, before, rest(kernel, before), periodic).unsqueeze(1)
    weights = kernel[None, None]
    if kernel.ndim == 1:
        cells, weights = cells.unsqueeze(-2), weights.unsqueeze(-2)
    ones, zeros = [1] * (cells.ndim - 2), [0] * (cells.ndim - 2)
    found = torch.cudnn_convolution(cells, weights, zeros, ones, ones, 1, False, False, False)
    return found.reshape(x.shape)


def by_shifts(x: Tensor, kernel: Tensor, before: Sequence[int], periodic: bool) -> Tensor:
    """Return shifted copies of the cells, each times its weight, added up."""
    cells, weights = widened(x, kernel)
    cells = extended(cells, before, rest(kernel, before), periodic)
    first, *others = product(*map(range, kernel.shape))
    total = (seen_at(cells, first, x.shape[1:]) * weights[first]).contiguous()
    # vmap does not know how to add in place.
    add = torch.addcmul if transformed() else Tensor.addcmul_
    for index in others:
        total = add(total, seen_at(cells, index, x.shape[1:]), weights[index])
    return total.to(x.dtype)


def weights_of(call: Call) -> int:
    """Return how many weights the kernel of a call has."""
    return prod(sizes_of(call))


def sizes_of(call: Call) -> tuple[int, ...]:
    """Return how large the kernel of a call is in each dim."""
    return tuple(map(int, str(call.settings["kernel"]).split("x")))


WINDOWS = Candidate(
    name="windows",
    function=_windows,
    applies=lambda call: call.device.type != "cpu" or weights_of(call) <= _MOST_WINDOWS,
)
SHIFTS = Candidate(
    name="shifts", function=by_shifts, applies=lambda call: weights_of(call) <= _MOST_SHIFTS
)
