"""The candidate that multiplies spectra: the work hardly grows with the kernel."""

from collections.abc import Sequence
from functools import cache
from math import prod

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

    The factor of the inverse transform is taken before the first one. There it costs the
    same, and no spectrum is then larger than the cells: a sum of all of them may be more
    than the largest number.
    """
    cells, weights = widened(x, kernel)
    space, after = x.shape[1:], rest(kernel, before)
    wraps = [periodic and fast_length(n) == n for n in space]
    if not all(wraps):
        margin_before = [0 if each else b for each, b in zip(wraps, before, strict=True)]
        margin_after = [0 if each else a for each, a in zip(wraps, after, strict=True)]
        cells = extended(cells, margin_before, margin_after, periodic)
        cells = _filled(cells, [fast_length(n) for n in cells.shape[1:]])
    lengths = cells.shape[1:]
    cells = cells * (1 / prod(lengths))
    dims = tuple(range(-len(space), 0))
    weights = torch.fft.rfftn(_placed(weights, lengths, wraps, before))
    # The conjugate turns the kernel around.
    spectrum = torch.fft.rfftn(cells, dim=dims) * weights.conj()
    found = torch.fft.irfftn(spectrum, lengths, dims, norm="forward")
    for dim, n in enumerate(space):
        if lengths[dim] != n:
            found = found.narrow(dim + 1, 0, n)
    return found.to(x.dtype).contiguous()


def _filled(x: Tensor, lengths: Sequence[int]) -> Tensor:
    more = [length - n for length, n in zip(lengths, x.shape[1:], strict=True)]
    return F.pad(x, [width for m in reversed(more) for width in (0, m)]) if any(more) else x


def _placed(
    weights: Tensor, lengths: Sequence[int], wraps: Sequence[bool], before: Sequence[int]
) -> Tensor:
    """Weights among zeros; on a torus that of the cell itself comes first."""
    more = [length - k for length, k in zip(lengths, weights.shape, strict=True)]
    wide = F.pad(weights, [width for m in reversed(more) for width in (0, m)])
    back = {dim: -b for dim, b in enumerate(before) if wraps[dim] and b}
    return wide.roll(list(back.values()), list(back)) if back else wide


FOURIER = Candidate(name="fft", function=by_spectra)
