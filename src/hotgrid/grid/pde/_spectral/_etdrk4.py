"""ETDRK4: the linear part of an equation exactly, the rest by fourth-order Runge-Kutta."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from hotgrid.grid.model import Whole

# Points on the upper half of a circle around every number; the lower half mirrors it.
_POINTS = 16


class Coefficients(NamedTuple):
    """The coefficients of one step of v' = L v + N(v), real `[*modes, 2]` each.

    Attributes:
        decay: exp(L dt).
        half: exp(L dt / 2).
        push: What N counts for in the inner stages.
        first: What N at the start counts for in the result.
        middle: The same of each of the two stages in the middle.
        last: The same of the stage at the end.
    """

    decay: Tensor
    half: Tensor
    push: Tensor
    first: Tensor
    middle: Tensor
    last: Tensor


def coefficients(linear: Tensor, dt: Tensor, dtype: torch.dtype) -> Coefficients:
    """The coefficients of a step, by Cauchy's integral (Kassam and Trefethen 2005).

    Their formulas are differences of nearly equal numbers where L dt is small. On a circle
    around L dt they are not, and their mean over it is the value at the centre.

    Arguments:
        linear: L of every mode, real, float64.
        dt: The time of a step, 0-d.
        dtype: The floating type of the coefficients.
    """
    step = dt.double()
    z = linear * step
    push, first, middle, last = (torch.zeros_like(z) for _ in range(4))
    for point in range(_POINTS):
        turn = math.pi * (point + 0.5) / _POINTS
        r = z + complex(math.cos(turn), math.sin(turn))
        grown, cube = r.exp(), r**3
        push = push + (((r / 2).exp() - 1) / r).real
        first = first + ((-4 - r + grown * (4 - 3 * r + r * r)) / cube).real
        middle = middle + (2 * (2 + r + grown * (r - 2)) / cube).real
        last = last + ((-4 - 3 * r - r * r + grown * (4 - r)) / cube).real
    scaled = [step * each / _POINTS for each in (push, first, middle, last)]
    every = (z.exp(), (z / 2).exp(), *scaled)
    pairs = [each.to(dtype)[..., None].expand(*each.shape, 2) for each in every]
    return Coefficients(*[each.contiguous() for each in pairs])


class Etdrk4:
    """A step of all modes, with N in three elementwise parts between transforms.

    Modes are pairs of real numbers `[..., *modes, 2]`, which torch compiles and vectorises
    as long as they are only multiplied by real ones. So N is i times what `gathered`
    makes; where products need i v, `rotated` makes the scheme work on that.

    Arguments:
        whole: The grid.
        spread: From the modes and `waves` those of what N multiplies in space.
        products: Those products, from cells to cells.
        gathered: From the modes of the products and `waves` N / i.
        waves: What `waves_of` gave.
        rotated: Whether the scheme works on i v.
    """

    def __init__(
        self,
        whole: Whole,
        spread: Callable[..., Tensor],
        products: Callable[[Tensor], Tensor],
        gathered: Callable[..., Tensor],
        waves: list[Tensor],
        *,
        rotated: bool,
    ) -> None:
        def first(
            v: Tensor, n: Tensor, half: Tensor, push: Tensor, *waves: Tensor
        ) -> tuple[Tensor, Tensor]:
            a = half * v + push * n
            return a, spread(a, *waves)

        def second(v: Tensor, n: Tensor, half: Tensor, push: Tensor, *waves: Tensor) -> Tensor:
            return spread(half * v + push * n, *waves)

        def third(a: Tensor, n: Tensor, n2: Tensor, *others: Tensor) -> Tensor:
            half, push, *waves = others
            return spread(half * a + push * (2 * n2 - n), *waves)

        def last(
            v: Tensor, n: Tensor, n1: Tensor, n2: Tensor, n3: Tensor, *c: Tensor
        ) -> Tensor:
            decay, begin, middle, end = c
            return decay * v + begin * n + middle * (n1 + n2) + end * n3

        self._whole = whole
        self._waves = waves
        self._turn = 1j if rotated else 1.0
        self._spread, self._products = whole.fused(spread), whole.fused(products)
        self._gathered = whole.fused(gathered)
        self._first, self._second = whole.fused(first), whole.fused(second)
        self._third, self._last = whole.fused(third), whole.fused(last)

    def step(self, u: Tensor, c: Coefficients, cells: Tensor | None = None) -> Tensor:
        """Cells `[..., *space]` one step later.

        Arguments:
            u: The cells.
            c: The coefficients.
            cells: What `spread` is in space at the start, if that is known.
        """
        waves, inner = self._waves, (c.half, c.push)
        v = torch.view_as_real(self._whole.rfft(u) * self._turn)
        if cells is None:
            cells = self._back(self._spread(v, *waves))
        n = self._slope(cells)
        a, at = self._first(v, n, *inner, *waves)
        n1 = self._slope(self._back(at))
        n2 = self._slope(self._back(self._second(v, n1, *inner, *waves)))
        n3 = self._slope(self._back(self._third(a, n, n2, *inner, *waves)))
        new = self._last(v, n, n1, n2, n3, c.decay, c.first, c.middle, c.last)
        return self._whole.irfft(torch.view_as_complex(new) * (1 / self._turn))

    def _back(self, pairs: Tensor) -> Tensor:
        return self._whole.irfft(torch.view_as_complex(pairs.contiguous()))

    def _slope(self, cells: Tensor) -> Tensor:
        """N, from what it multiplies in space."""
        modes = torch.view_as_real(self._whole.rfft(self._products(cells)))
        part = self._gathered(modes, *self._waves)
        return torch.view_as_real(1j * torch.view_as_complex(part.contiguous()))


def waves_of(whole: Whole, dtype: torch.dtype, scale: Tensor | float = 1.0) -> list[Tensor]:
    """For each axis the wavenumbers over `scale`, then for each which are kept (1, else 0).

    Two thirds of each axis are kept, so that products do not alias. They broadcast against
    modes as pairs.
    """
    waves = [k[..., None] for k in whole.wavenumbers()]
    waves[-1] = waves[-1].expand(*waves[-1].shape[:-1], 2).contiguous()
    masks = [(k.abs() < 2 * math.pi / 3).to(dtype) for k in waves]
    return [*((k / scale).to(dtype) for k in waves), *masks]
