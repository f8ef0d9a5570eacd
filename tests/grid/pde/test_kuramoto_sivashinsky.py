"""Kuramoto-Sivashinsky: what the equation keeps, and how it is seen from a moving frame."""

import math

import pytest
import torch
from torch import Tensor

from hotgrid.grid import Simulation
from hotgrid.grid.pde import KuramotoSivashinsky


def after(u: Tensor, time: float, **parameters: float) -> Tensor:
    model = KuramotoSivashinsky(**parameters)
    sim = Simulation(
        model, size=tuple(u.shape), state={"u": u}, dtype=torch.float64, device="cpu"
    )
    sim.run(round(time / model.dt), progress=False)
    return sim.state["u"]


def wave(n: int) -> Tensor:
    x = 2 * math.pi * torch.arange(n, dtype=torch.float64) / n
    return torch.cos(x) + 0.3 * torch.sin(2 * x + 1)


def test_the_mean_of_a_velocity_stays():
    later = after(wave(48) + 0.25, 10, dx=1.0)
    assert later.mean().item() == pytest.approx(0.25, abs=1e-13)


def test_a_mean_velocity_carries_everything_along():
    """In a frame that moves by `speed` the same happens: here by 12 cells in t = 6."""
    still, moving = after(wave(48), 6, dt=1 / 32), after(wave(48) + 1.5, 6, dt=1 / 32)
    torch.testing.assert_close(moving - 1.5, still.roll(12), rtol=0, atol=1e-5)


def test_a_front_along_one_axis_is_the_slope_of_a_line():
    """On a plane u is a height, whose slope is the velocity of a line."""
    n, dx = 48, 0.75
    x = 2 * math.pi * torch.arange(n, dtype=torch.float64) / n
    length = n * dx / (2 * math.pi)
    height, slope = length * torch.sin(x), torch.cos(x)
    later = after(height.expand(4, n).clone(), 4, dx=dx, dt=1 / 16)
    modes = torch.fft.rfft(later[0]) * 1j * torch.arange(n // 2 + 1) / length
    found = torch.fft.irfft(modes, n)
    torch.testing.assert_close(found, after(slope, 4, dx=dx, dt=1 / 16), rtol=0, atol=1e-7)
    assert abs(later.mean().item()) < 1e-12
