"""The spectral solver against exact solutions."""

import math

import torch
from torch import Tensor

from hotgrid.grid.validate._references import flow_after


def axes(n: int) -> tuple[Tensor, Tensor]:
    x = 2 * math.pi * torch.arange(n, dtype=torch.float64) / n
    y, x = torch.meshgrid(x, x, indexing="ij")
    return y, x


def test_a_taylor_green_vortex_decays_as_it_should():
    n, viscosity, time = 24, 0.05, 60.0
    y, x = axes(n)
    start = [0.1 * torch.sin(x) * torch.cos(y), -0.1 * torch.cos(x) * torch.sin(y)]
    found = flow_after(start, viscosity, time, steps=60)
    fall = math.exp(-2 * viscosity * (2 * math.pi / n) ** 2 * time)
    for after, before in zip(found, start, strict=True):
        torch.testing.assert_close(after, fall * before, rtol=0, atol=1e-9)


def test_a_shear_flow_carries_a_small_wave_along():
    """One short step, beside the same by hand: dw/dt = -u dw/dx - v dw/dy."""
    n, time, small = 32, 1e-3, 1e-3
    y, x = axes(n)
    k = 2 * math.pi / n
    v, u = small * torch.sin(3 * x), torch.cos(y)
    after_v, after_u = flow_after([v, u], 0.0, time, steps=1)
    slope_of_w = -u * -9 * k * k * small * torch.sin(3 * x) - v * k * k * torch.cos(y)
    w = _curl(after_v, after_u) - _curl(v, u)
    torch.testing.assert_close(w / time, slope_of_w, rtol=0, atol=1e-7)


def _curl(v: Tensor, u: Tensor) -> Tensor:
    k = 2j * math.pi * torch.fft.fftfreq(v.shape[0], dtype=torch.float64)
    return torch.fft.ifft2(k * torch.fft.fft2(v) - k[:, None] * torch.fft.fft2(u)).real


def test_without_viscosity_the_energy_stays():
    n = 32
    y, x = axes(n)
    start = [torch.sin(x) * torch.cos(2 * y), -2 * torch.cos(x) * torch.sin(2 * y)]
    start[1] = start[1] + 0.3 * torch.cos(y)
    found = flow_after(start, 0.0, 10.0, steps=200)
    moved = max((a - b).abs().max().item() for a, b in zip(found, start, strict=True))
    energy = [sum((plane**2).sum().item() for plane in flow) for flow in (start, found)]
    assert moved > 0.3
    assert abs(energy[1] / energy[0] - 1) < 1e-5
