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
    """The coefficients of one step of v' = L v + N(v), real `[*modes, 1]` each.

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
    return Coefficients(*[each.to(dtype)[..., None] for each in every])


class Etdrk4:
    """A step of all modes, with N(v) in three elementwise parts between transforms.

    Modes are pairs of real numbers `[..., *modes, 2]` in all three, so that each can be
    compiled together with the stage of the scheme that it belongs to.

    Arguments:
        whole: The grid.
        spread: From v and wavenumbers the modes of what N multiplies in space.
        products: Those products, from cells to cells.
        gathered: From the modes of the products and wavenumbers N(v).
        waves: The wavenumbers, one for each axis, that broadcast against modes.
    """

    def __init__(
        self,
        whole: Whole,
        spread: Callable[..., Tensor],
        products: Callable[[Tensor], Tensor],
        gathered: Callable[..., Tensor],
        waves: list[Tensor],
    ) -> None:
        def first(v: Tensor, p: Tensor, half: Tensor, push: Tensor, *waves: Tensor):  # noqa: ANN202
            n = gathered(p, *waves)
            a = half * v + push * n
            return n, a, spread(a, *waves)

        def second(v: Tensor, p: Tensor, half: Tensor, push: Tensor, *waves: Tensor):  # noqa: ANN202
            n = gathered(p, *waves)
            return n, spread(half * v + push * n, *waves)

        def third(a: Tensor, n0: Tensor, n1: Tensor, p: Tensor, half: Tensor, push: Tensor, *waves: Tensor):  # noqa: ANN202, E501
            n = gathered(p, *waves)
            return n1 + n, spread(half * a + push * (2 * n - n0), *waves)

        def last(v: Tensor, n0: Tensor, both: Tensor, p: Tensor, *others: Tensor) -> Tensor:
            decay, begin, middle, end, *waves = others
            return decay * v + begin * n0 + middle * both + end * gathered(p, *waves)

        self._whole = whole
        self._waves = waves
        self._spread, self._products = whole.fused(spread), whole.fused(products)
        self._stages = [whole.fused(each) for each in (first, second, third, last)]

    def step(self, v: Tensor, c: Coefficients, cells: Tensor | None = None) -> Tensor:
        """Cells one step later.

        Arguments:
            v: The modes, complex `[..., *modes]`.
            c: The coefficients.
            cells: What `spread` of `v` is in space, if it is known.
        """
        waves, pairs = self._waves, torch.view_as_real(v)
        first, second, third, last = self._stages
        if cells is None:
            cells = self._back(self._spread(pairs, *waves))
        n0, a, at = first(pairs, self._multiplied(cells), c.half, c.push, *waves)
        n1, at = second(pairs, self._multiplied(self._back(at)), c.half, c.push, *waves)
        p = self._multiplied(self._back(at))
        both, at = third(a, n0, n1, p, c.half, c.push, *waves)
        p = self._multiplied(self._back(at))
        new = last(pairs, n0, both, p, c.decay, c.first, c.middle, c.last, *waves)
        return self._back(new)

    def _back(self, pairs: Tensor) -> Tensor:
        return self._whole.irfft(torch.view_as_complex(pairs.contiguous()))

    def _multiplied(self, cells: Tensor) -> Tensor:
        return torch.view_as_real(self._whole.rfft(self._products(cells)))


def turned(v: Tensor, k: Tensor) -> Tensor:
    """i k v, for modes as pairs `[..., *modes, 2]` and real k."""
    re, im = v.unbind(-1)
    return torch.stack((-k * im, k * re), -1)


def kept(*waves: Tensor) -> Tensor:
    """1 for modes that are kept, 0 for others: two thirds of each axis, so none aliases."""
    found = (waves[0].abs() < 2 * math.pi / 3).to(waves[0])
    for k in waves[1:]:
        found = found * (k.abs() < 2 * math.pi / 3)
    return found
