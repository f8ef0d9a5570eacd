"""Navier-Stokes: momentum, energy, and a start without history."""

import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.pde import NavierStokes


def simulation(dims: int = 2, **parameters: float) -> Simulation:
    size = {2: (24, 32), 3: (8, 10, 12)}[dims]
    model = NavierStokes(dims, **parameters)  # pyright: ignore[reportArgumentType]
    return Simulation(model, size=size, device="cpu", dtype=torch.float64, compiled=False)


@pytest.mark.parametrize("dims", [2, 3])
def test_momentum_stays_and_volume_does_too(dims: int):
    sim = simulation(dims)
    sim.state = {"velocity": sim.state["velocity"] + 0.3}
    before = sim.state["velocity"].flatten(1).mean(1)
    sim.run(15, progress=False)
    torch.testing.assert_close(sim.state["velocity"].flatten(1).mean(1), before)
    assert sim.observe()["divergence"] < 1e-13


def test_central_fluxes_keep_energy_but_for_time_steps():
    """Third order: with half of the step an eighth of the loss."""

    def loss(dt: float) -> float:
        sim = simulation(dt=dt, viscosity=0)
        # Full orders from the first step on need a history: let it be made first.
        sim.run(3, progress=False)
        before = sim.observe()["energy"]
        sim.run(round(2 / dt), progress=False)
        return abs(sim.observe()["energy"] / before - 1)

    assert loss(0.1) < 1e-4
    assert loss(0.1) / loss(0.05) > 6


def test_the_first_two_steps_do_without_slopes_of_before():
    sim = simulation()
    assert sim.state["age"].unique().tolist() == [0]
    sim.run(1, progress=False)
    assert sim.state["age"].unique().tolist() == [1]
    sim.run(5, progress=False)
    assert sim.state["age"].unique().tolist() == [2]


def test_a_viscosity_that_is_unstable_is_refused():
    with pytest.raises(ArgumentError, match=r"`dt` must be at most 0.1364 .* in 2 dims"):
        simulation(dt=0.2, viscosity=0.5)
