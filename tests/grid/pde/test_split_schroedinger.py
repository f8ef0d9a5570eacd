"""SplitSchroedinger: free packets and steady states, both known exactly."""

import math

import pytest
import torch

from hotgrid.grid import Simulation
from hotgrid.grid.pde import SplitSchroedinger


def simulation(model: SplitSchroedinger, size: tuple[int, ...], **options) -> Simulation:
    return Simulation(model, size=size, device="cpu", dtype=torch.float64, **options)


def test_a_free_packet_spreads_as_known_whatever_the_step():
    n, width, time = 256, 8.0, 40.0
    x = torch.arange(n, dtype=torch.float64) - n // 2
    start = torch.exp(-(x**2) / (4 * width**2))
    start = start / start.square().sum().sqrt()
    state = {"re": start, "im": torch.zeros(n)}
    for dt in (40.0, 0.8):
        sim = simulation(SplitSchroedinger(dt=dt, stiffness=0), (n,), state=state)
        sim.run(round(time / dt), progress=False)
        density = sim.view("density")
        spread = math.sqrt((density * x**2).sum().item())
        assert spread == pytest.approx(width * math.hypot(1, time / (2 * width**2)), rel=1e-6)


def test_the_ground_state_of_the_bowl_only_turns_its_phase():
    model = SplitSchroedinger(dt=0.5)
    x = torch.arange(96, dtype=torch.float64) - 48
    ground = torch.exp(-(x**2) * math.sqrt(model.stiffness) / 2)
    ground = ground / ground.square().sum().sqrt()
    sim = simulation(model, (96,), state={"re": ground, "im": torch.zeros(96)})
    sim.run(100, progress=False)
    turned = 0.5 * math.sqrt(model.stiffness) * sim.time
    expected = ground * math.cos(turned)
    torch.testing.assert_close(sim.state["re"], expected, rtol=0, atol=1e-5)
    assert sim.observe()["norm"] == pytest.approx(1, abs=1e-13)
