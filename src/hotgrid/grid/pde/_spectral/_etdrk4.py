"""ETDRK4: the linear part of an equation exactly, the rest by fourth-order Runge-Kutta."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

# Points on the upper half of a circle around every number; the lower half mirrors it.
_POINTS = 16


@dataclass(frozen=True)
class Etdrk4:
    """The coefficients of one step of v' = L v + N(v), real `[*modes]` each.

    Arguments:
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

    def step(self, v: Tensor, slope: Tensor, nonlinear: Callable[[Tensor], Tensor]) -> Tensor:
        """The modes one step later.

        Arguments:
            v: The modes, complex `[..., *modes]`.
            slope: N(v), which the caller may know cheaper than `nonlinear` does.
            nonlinear: N.
        """
        halfway = _real(v) * self.half[..., None]
        a = torch.addcmul(halfway, self.push[..., None], _real(slope))
        at_a = nonlinear(torch.view_as_complex(a))
        b = torch.addcmul(halfway, self.push[..., None], _real(at_a))
        at_b = nonlinear(torch.view_as_complex(b))
        both = torch.sub(2 * _real(at_b), _real(slope))
        c = torch.addcmul(a * self.half[..., None], self.push[..., None], both)
        at_c = nonlinear(torch.view_as_complex(c))
        new = _real(v) * self.decay[..., None]
        new = torch.addcmul(new, self.first[..., None], _real(slope))
        new = torch.addcmul(new, self.middle[..., None], _real(at_a) + _real(at_b))
        new = torch.addcmul(new, self.last[..., None], _real(at_c))
        return torch.view_as_complex(new)


def etdrk4(linear: Tensor, dt: Tensor, dtype: torch.dtype) -> Etdrk4:
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
    return Etdrk4(*[each.to(dtype) for each in (z.exp(), (z / 2).exp(), *scaled)])


def _real(modes: Tensor) -> Tensor:
    """Modes as pairs of real numbers; what is given as such stays."""
    return torch.view_as_real(modes) if modes.is_complex() else modes


def kept_modes(waves: list[Tensor]) -> Tensor:
    """Which modes are kept, bool: two thirds along each axis, so that no product aliases."""
    found = torch.ones((), dtype=torch.bool, device=waves[0].device)
    for k in waves:
        found = found & (k.abs() < 2 * math.pi / 3)
    return found
