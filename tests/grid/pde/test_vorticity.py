"""Vorticity: balances of energy and enstrophy, and a view of the velocity."""

import math

import pytest
import torch

from hotgrid.grid import Simulation
from hotgrid.grid.pde import Vorticity


def simulation(**options) -> Simulation:
    plain = {"size": (32, 48), "device": "cpu", "dtype": torch.float64}
    return Simulation(options.pop("model", Vorticity()), **{**plain, **options})


def test_energy_falls_by_viscosity_times_enstrophy():
    """dE/dt = -2 viscosity Z, over one small step."""
    sim = simulation(model=Vorticity(dt=0.01, viscosity=0.05))
    before = sim.observe()
    sim.run(1, progress=False)
    after = sim.observe()
    rate = (after["energy"] - before["energy"]) / 0.01
    middle = (before["enstrophy"] + after["enstrophy"]) / 2
    assert rate == pytest.approx(-2 * 0.05 * middle, rel=1e-5)
    assert after["enstrophy"] < before["enstrophy"]


def test_without_viscosity_resolved_energy_and_enstrophy_stay():
    x = 2 * math.pi * torch.arange(32, dtype=torch.float64) / 32
    w = torch.cos(x[:, None]) + torch.sin(2 * x + x[:, None])
    sim = simulation(model=Vorticity(dt=0.05, viscosity=0), size=(32, 32), state={"w": w / 10})
    before = sim.observe()
    sim.run(40, progress=False)
    assert sim.observe()["energy"] == pytest.approx(before["energy"], rel=1e-9)
    assert sim.observe()["enstrophy"] == pytest.approx(before["enstrophy"], rel=1e-9)


def test_a_shear_flow_is_seen_as_its_speed():
    y = 2 * math.pi * torch.arange(32, dtype=torch.float64) / 32
    u = torch.cos(y)
    # w = -du/dy, in units of cells.
    w = (2 * math.pi / 32) * torch.sin(y)
    sim = simulation(size=(32, 48), state={"w": w[:, None].expand(32, 48).clone()})
    expected = u.abs()[:, None].expand(32, 48)
    torch.testing.assert_close(sim.view("speed"), expected, rtol=0, atol=1e-12)


def test_the_default_start_moves_by_about_one_cell_in_a_unit_of_time():
    assert simulation().observe()["energy"] == pytest.approx(0.5, rel=1e-6)
