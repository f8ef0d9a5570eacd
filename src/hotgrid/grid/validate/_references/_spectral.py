"""A second opinion on flows in a periodic square: a solver that shares nothing with ours."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.fft import irfft2, rfft2


def flow_after(
    velocity: Sequence[Tensor], viscosity: float, time: float, steps: int
) -> list[Tensor]:
    """An incompressible flow some time later, by Fourier modes.

    Fourth-order Runge-Kutta; products are cut off at two thirds of the modes. Units
    are cells, as everywhere on the grid.

    Arguments:
        velocity: Along y and along x, `[n, n]` each, double, at the start; without
            divergence and with a mean of zero.
        viscosity: The kinematic viscosity.
        time: How much later.
        steps: In how many steps.

    Returns:
        The velocity along y and along x, `[n, n]` each.
    """
    modes = _Modes(velocity[0])
    v, u = (rfft2(plane) for plane in velocity)
    w, dt = 1j * modes.kx * v - 1j * modes.ky * u, time / steps
    slope = _slope(modes, viscosity)
    for _ in range(steps):
        a = slope(w)
        b = slope(w + 0.5 * dt * a)
        c = slope(w + 0.5 * dt * b)
        d = slope(w + dt * c)
        w = w + dt / 6 * (a + 2 * b + 2 * c + d)
    return modes.velocity(w)


class _Modes:
    """Wave numbers of a square, and what they turn vorticity into."""

    def __init__(self, like: Tensor) -> None:
        self.n = like.shape[-1]
        on = {"dtype": torch.float64, "device": like.device}
        self.ky = 2 * math.pi * torch.fft.fftfreq(self.n, **on)[:, None]
        self.kx = 2 * math.pi * torch.fft.rfftfreq(self.n, **on)
        self.square = self.kx**2 + self.ky**2
        self.kept = (self.kx.abs() < 2 * math.pi / 3) & (self.ky.abs() < 2 * math.pi / 3)

    def field(self, modes: Tensor) -> Tensor:
        return irfft2(modes, s=(self.n, self.n))

    def velocity(self, vorticity: Tensor) -> list[Tensor]:
        # The mode of the mean is zero over zero.
        stream = torch.where(self.square > 0, vorticity / self.square, 0.0)
        return [self.field(-1j * self.kx * stream), self.field(1j * self.ky * stream)]


def _slope(modes: _Modes, viscosity: float) -> Callable[[Tensor], Tensor]:
    def slope(w: Tensor) -> Tensor:
        v, u = modes.velocity(w)
        carried = u * modes.field(1j * modes.kx * w) + v * modes.field(1j * modes.ky * w)
        return -(modes.kept * rfft2(carried)) - viscosity * modes.square * w

    return slope
