"""A candidate that multiplies spectra: the work hardly grows with the kernel."""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from math import prod
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from hotgrid.kernels.tune import Candidate

from ._extended import extended, widened

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


class Plan(NamedTuple):
    """How grids of one shape are transformed.

    Attributes:
        dims: The dims of space, counted from the end.
        margin_before: Cells that each dim gets before its first; zeros on a torus of a fast
            length, which is what a transform takes it for.
        margin_after: Cells that each dim gets after its last.
        fill: Zeros behind, as `pad` takes them, up to fast lengths; empty if none are needed.
        lengths: The lengths of the transform.
        factor: The factor of the inverse transform.
        around: Zeros behind the kernel, as `pad` takes them, up to the same lengths.
        back: How far it is moved back in each dim, so that on a torus the weight of the cell
            itself comes first.
        turns: The same as `roll` takes it: by how much, and the dims.
        cut: Dims and lengths of what is kept of the result.
    """

    dims: tuple[int, ...]
    margin_before: tuple[int, ...]
    margin_after: tuple[int, ...]
    fill: tuple[int, ...]
    lengths: tuple[int, ...]
    factor: float
    around: tuple[int, ...]
    back: tuple[int, ...]
    turns: tuple[tuple[int, ...], tuple[int, ...]]
    cut: tuple[tuple[int, int], ...]


@lru_cache(maxsize=4096)
def planned(
    space: tuple[int, ...], sizes: tuple[int, ...], before: tuple[int, ...], periodic: bool
) -> Plan:
    """Return how grids of a shape are transformed for kernels of given sizes.

    A torus of a fast length is left as it is. Otherwise cells get their margin and then
    zeros up to a fast length, and what wraps around is cut off.
    """
    rank = len(space)
    wraps = [periodic and fast_length(n) == n for n in space]
    first = [0 if each else b for each, b in zip(wraps, before, strict=True)]
    ends = zip(wraps, sizes, before, strict=True)
    last = [0 if each else k - 1 - b for each, k, b in ends]
    wide = [n + b + a for n, b, a in zip(space, first, last, strict=True)]
    lengths = [n if each else fast_length(n) for each, n in zip(wraps, wide, strict=True)]
    back = [b if each else 0 for each, b in zip(wraps, before, strict=True)]
    turned = tuple([dim for dim, b in enumerate(back) if b])
    return Plan(
        dims=tuple(range(-rank, 0)),
        margin_before=tuple(first),
        margin_after=tuple(last),
        fill=_behind(wide, lengths),
        lengths=tuple(lengths),
        factor=1 / prod(lengths),
        around=_behind(sizes, lengths),
        back=tuple(back),
        turns=(tuple([-back[dim] for dim in turned]), turned),
        cut=tuple([(d - rank, n) for d, n in enumerate(space) if lengths[d] != n]),
    )


def _behind(sizes: Sequence[int], lengths: Sequence[int]) -> tuple[int, ...]:
    """The zeros from sizes up to lengths, as `pad` takes them; none if there are none."""
    more = [length - n for length, n in zip(lengths, sizes, strict=True)]
    return tuple([width for m in reversed(more) for width in (0, m)]) if any(more) else ()


def by_spectra(x: Tensor, kernel: Tensor, before: Sequence[int], periodic: bool) -> Tensor:
    """Return the cells whose spectrum is that of `x` times that of the kernel, turned around.

    `x` is `[..., *space]`. All of it has derivatives.
    """
    return multiplied_spectra(x, kernel, before, periodic, turned_spectrum)


def multiplied_spectra(
    x: Tensor,
    kernel: Tensor,
    before: Sequence[int],
    periodic: bool,
    spectrum_of: Callable[[Tensor, Plan], Tensor],
) -> Tensor:
    """Do that with a given way to the conjugate half spectrum of a kernel.

    The factor of the inverse transform is taken before the first one. There it costs the
    same, and no spectrum is then larger than the cells: a sum of all of them may be more
    than the largest number.
    """
    cells, weights = widened(x, kernel)
    rank = kernel.ndim
    plan = planned(x.shape[-rank:], kernel.shape, tuple(before), periodic)
    if plan.cut:
        cells = extended(cells, plan.margin_before, plan.margin_after, periodic)
        cells = F.pad(cells, plan.fill) if plan.fill else cells
    cells = cells * plan.factor
    # Both names do the same; the one for two dims takes torch less time.
    two = rank == 2
    spectrum = torch.fft.rfft2(cells) if two else torch.fft.rfftn(cells, dim=plan.dims)
    spectrum = spectrum * spectrum_of(weights, plan)
    if two:
        found = torch.fft.irfft2(spectrum, plan.lengths, norm="forward")
    else:
        found = torch.fft.irfftn(spectrum, plan.lengths, plan.dims, norm="forward")
    for dim, n in plan.cut:
        found = found.narrow(dim, 0, n)
    if found.dtype is not x.dtype:
        return found.to(x.dtype, memory_format=torch.contiguous_format)
    return found if found.is_contiguous() else found.contiguous()


def turned_spectrum(weights: Tensor, plan: Plan) -> Tensor:
    """Return the conjugate half spectrum of a kernel, as a transform of it among zeros.

    The conjugate turns the kernel around.
    """
    wide = F.pad(weights, plan.around) if plan.around else weights
    shifts, dims = plan.turns
    spectrum = torch.fft.rfftn(wide.roll(shifts, dims) if dims else wide)
    # Now, not when it is read: inside a dispatch mode torch would not resolve it.
    return spectrum.conj().resolve_conj()


FOURIER = Candidate(name="fft", function=by_spectra)
