"""Shallow water: symmetry, dam break, speeds, and what must stay the same."""

import math

import pytest
import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.pde import ShallowWater


def simulation(model: ShallowWater, h: Tensor, mx: Tensor | None = None) -> Simulation:
    still = torch.zeros_like(h)
    state = {"h": h, "mx": still if mx is None else mx, "my": still}
    return Simulation(
        model, size=h.shape, state=state, dtype=torch.float64, compiled=False, device="cpu"
    )


def hump(n: int, height: float) -> Tensor:
    x = torch.arange(n, dtype=torch.float64) - n // 2
    return 1 + height * torch.exp(-(x[:, None] ** 2 + x**2) / 18)


def test_still_water_stays_still():
    sim = simulation(ShallowWater(), torch.full((8, 10), 0.7, dtype=torch.float64))
    sim.run(20)
    assert sim.state["h"].eq(0.7).all()
    assert sim.observe()["energy"] == pytest.approx(0.5 * 80 * 0.7**2)


def test_both_axes_and_both_directions_are_alike():
    sim = simulation(ShallowWater(), hump(33, 0.5))
    sim.run(25)
    h = sim.state["h"]
    for twin in (h.T, h.flip(0), h.flip(1)):
        torch.testing.assert_close(h, twin, rtol=0, atol=1e-13)
    torch.testing.assert_close(sim.state["mx"], sim.state["my"].T, rtol=0, atol=1e-13)


@pytest.mark.parametrize("gravity", [0.5, 2.0])
def test_a_weak_wave_travels_at_the_root_of_depth_times_gravity(gravity: float):
    """To the right only: the flow of such a wave is its height times its speed."""
    n, depth, speed = 64, 1.3, math.sqrt(1.3 * gravity)
    x = 2 * math.pi * torch.arange(n, dtype=torch.float64).expand(2, n) / n
    wave = 1e-4 * torch.sin(x)
    model = ShallowWater(gravity=gravity, dt=0.2)
    sim = simulation(model, depth + wave, speed * wave)
    sim.run(100)
    later = 1e-4 * torch.sin(x - 2 * math.pi * speed * 20 / n)
    torch.testing.assert_close(sim.state["h"] - depth, later, rtol=0, atol=4e-6)


def test_momentum_is_kept_and_energy_falls_in_bores():
    sim = simulation(ShallowWater(dt=0.15), hump(24, 2.0), 0.3 * hump(24, 1.0))
    before, begun = sim.observe(), sim.state["mx"].sum()
    sim.run(200)
    assert sim.state["mx"].sum() == pytest.approx(begun.item(), rel=1e-12)
    assert sim.observe()["energy"] < 0.999 * before["energy"]


def test_a_shear_layer_at_rest_with_itself_is_kept_sharp():
    """Water that flows along a face carries nothing through it."""
    mx = torch.zeros(16, 8, dtype=torch.float64)
    mx[4:12] = 0.5
    sim = simulation(ShallowWater(), torch.ones_like(mx), mx)
    sim.run(50)
    torch.testing.assert_close(sim.state["mx"], mx, rtol=0, atol=1e-14)


def test_gravity_must_pull():
    with pytest.raises(ArgumentError, match=r"`gravity` must be above 0 .*got 0"):
        ShallowWater(gravity=0)
