"""The candidate that multiplies spectra: the work hardly grows with the kernel."""

from collections.abc import Sequence
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from hotgrid.kernels.tune import Candidate

from ._extended import extended, rest, widened

_FAST_PRIMES = (2, 3, 5, 7)


@cache
def fast_length(n: int) -> int:
    """Return the smallest length from n on that has only small prime factors."""
    while True:
        left = n
        for prime in _FAST_PRIMES:
            while left % prime == 0:
                left //= prime
        if left == 1:
            return n
        n += 1


def by_spectra(x: Tensor, kernel: Tensor, before: Sequence[int], periodic: bool) -> Tensor:
    """Return the cells whose spectrum is that of `x` times that of the kernel, turned around.

    A torus of a fast length is what a transform takes it for. Otherwise cells get their
    margin and then zeros up to a fast length, and what wraps around is cut off.
    """
    cells, weights = widened(x, kernel)
    space, after = x.shape[1:], rest(kernel, before)
    weights = weights.flip(tuple(range(len(space))))
    wraps = [periodic and fast_length(n) == n for n in space]
    margin_before = [0 if each else b for each, b in zip(wraps, before, strict=True)]
    margin_after = [0 if each else a for each, a in zip(wraps, after, strict=True)]
    if not all(wraps):
        cells = extended(cells, margin_before, margin_after, periodic)
        cells = _filled(cells, [fast_length(n) for n in cells.shape[1:]])
    lengths = cells.shape[1:]
    # On a torus the weight of the cell itself comes first, and those before it at the end.
    first = [a if each else 0 for each, a in zip(wraps, after, strict=True)]
    weights = _placed(weights, first, lengths)
    dims = tuple(range(-len(space), 0))
    spectrum = torch.fft.rfftn(cells, dim=dims) * torch.fft.rfftn(weights)
    found = torch.fft.irfftn(spectrum, lengths, dims)
    for dim, n in enumerate(space):
        first = 0 if wraps[dim] else kernel.shape[dim] - 1
        found = found.narrow(dim + 1, first, n)
    return found.to(x.dtype).contiguous()


def _filled(x: Tensor, lengths: Sequence[int]) -> Tensor:
    more = [length - n for length, n in zip(lengths, x.shape[1:], strict=True)]
    return F.pad(x, [width for m in reversed(more) for width in (0, m)]) if any(more) else x


def _placed(weights: Tensor, first: Sequence[int], lengths: Sequence[int]) -> Tensor:
    """Zeros of the lengths with the weights in them, the one at `first` in the corner."""
    places = [
        (torch.arange(k, device=weights.device) - start) % length
        for k, start, length in zip(weights.shape, first, lengths, strict=True)
    ]
    whole = weights.new_zeros(lengths)
    whole[torch.meshgrid(*places, indexing="ij")] = weights
    return whole


FOURIER = Candidate(name="fft", function=by_spectra)
