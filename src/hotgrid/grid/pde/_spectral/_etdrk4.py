"""ETDRK4: the linear part of an equation exactly, the rest by fourth-order Runge-Kutta."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hotgrid.grid.model import Whole

from ._pairs import paired, turned

# Points on the upper half of a circle around every number; the lower half mirrors it.
_POINTS = 16


class Coefficients(NamedTuple):
    """The coefficients of one step of v' = L v + N(v), real, to multiply pairs by.

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
    return Coefficients(*[paired(each.to(dtype)) for each in every])


class Etdrk4:
    """A step of all modes, with N in three elementwise parts between transforms.

    Modes are pairs of real numbers `[..., *modes, 2]`, which torch compiles. All that is done
    between two transforms is one function, which reads modes as transforms left them. Inverse
    transforms divide by nothing, and N is not stored, but made again from the modes of its
    products where it is used.

    Arguments:
        whole: The grid.
        spread: From the modes and `waves` those of what N multiplies in space: a tensor, or a
            tuple of them.
        products: Those products, from cells to cells: a tensor, or a tuple of them.
        gathered: From the modes of each product and `waves` N; if `rotated` by real factors.
        planes: How many tensors `spread` and `products` make.
        rotated: Whether `spread` takes the modes times i.
    """

    def __init__(
        self,
        whole: Whole,
        spread: Callable[..., Any],
        products: Callable[..., Any],
        gathered: Callable[..., Tensor],
        planes: tuple[int, int],
        *,
        rotated: bool,
    ) -> None:
        scale = 1 / math.prod(whole.size)
        made = planes[1]

        def slope(modes: Tensor, waves: Sequence[Tensor]) -> Tensor:
            return gathered(*(modes.unbind(0) if made > 1 else (modes,)), *waves)

        def seen(x: Tensor) -> Tensor:
            # Here and not in `spread`: a turned sum would be stored before it is turned.
            return turned(x) if rotated else x

        def first(v: Tensor, *waves: Tensor) -> Any:
            return spread(scale * seen(v), *waves)

        def inner(v: Tensor, m: Tensor, half: Tensor, push: Tensor, *waves: Tensor) -> Any:
            a = half * seen(v) + push * slope(seen(m), waves)
            return spread(scale * a, *waves)

        def third(v: Tensor, m0: Tensor, m2: Tensor, *others: Tensor) -> Any:
            half, push, *waves = others
            n, n2 = slope(seen(m0), waves), slope(seen(m2), waves)
            a = half * seen(v) + push * n
            return spread(scale * (half * a + push * (2 * n2 - n)), *waves)

        def last(v: Tensor, *others: Tensor) -> Tensor:
            n, n1, n2, n3 = (slope(m, others[8:]) for m in others[:4])
            decay, begin, middle, end = others[4:8]
            return scale * (decay * v + begin * n + middle * (n1 + n2) + end * n3)

        self._whole = whole
        self._several = planes[0] > 1
        self._first, self._inner, self._third = (
            whole.fused(function, planes[0]) for function in (first, inner, third)
        )
        self._products, self._last = whole.fused(products, planes[1]), whole.fused(last)

    def step(
        self, u: Tensor, c: Coefficients, waves: Sequence[Tensor], cells: Tensor | None = None
    ) -> Tensor:
        """Cells `[..., *space]` one step later.

        Arguments:
            u: The cells.
            c: The coefficients.
            waves: What `waves_of` gave.
            cells: What `spread` is in space at the start, if that is known.
        """
        inner = c.half, c.push, *waves
        v = torch.view_as_real(self._whole.rfft(u))
        m = self._multiplied(self._back(self._first(v, *waves)) if cells is None else cells)
        m1 = self._multiplied(self._back(self._inner(v, m, *inner)))
        m2 = self._multiplied(self._back(self._inner(v, m1, *inner)))
        m3 = self._multiplied(self._back(self._third(v, m, m2, *inner)))
        outer = c.decay, c.first, c.middle, c.last
        return self._back(self._last(v, m, m1, m2, m3, *outer, *waves))

    def _back(self, pairs: Tensor) -> Tensor:
        return self._whole.irfft(torch.view_as_complex(pairs), norm="forward")

    def _multiplied(self, cells: Tensor) -> Tensor:
        """The modes of the products, from what they multiply in space."""
        factors = cells.unbind(0) if self._several else (cells,)
        return torch.view_as_real(self._whole.rfft(self._products(*factors)))


def waves_of(whole: Whole, dtype: torch.dtype, scale: Tensor | float = 1.0) -> list[Tensor]:
    """For each axis the wavenumbers over `scale`, then for each which are kept (1, else 0).

    Two thirds of each axis are kept, so that products do not alias. They broadcast against
    modes as pairs.
    """
    waves = [k[..., None] for k in whole.wavenumbers()]
    waves[-1] = paired(waves[-1][..., 0])
    masks = [(k.abs() < 2 * math.pi / 3).to(dtype) for k in waves]
    return [*((k / scale).to(dtype) for k in waves), *masks]
