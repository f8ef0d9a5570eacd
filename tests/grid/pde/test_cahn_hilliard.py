"""Cahn-Hilliard: a numpy twin, the profile of an interface, energy, and unstable steps."""

import math

import numpy as np
import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.pde import CahnHilliard


def simulation(model: CahnHilliard, size: tuple[int, ...], **options: object) -> Simulation:
    return Simulation(
        model,
        size=size,
        dtype=torch.float64,
        compiled=False,
        device="cpu",
        **options,  # pyright: ignore[reportArgumentType]
    )


def bent(x: np.ndarray) -> np.ndarray:
    second = [np.roll(x, 1, axis) - 2 * x + np.roll(x, -1, axis) for axis in range(x.ndim)]
    return np.sum(second, axis=0)


@pytest.mark.parametrize("size", [(48,), (20, 24)])
def test_steps_are_those_of_a_numpy_twin(size: tuple[int, ...]):
    model = CahnHilliard(mobility=0.01, kappa=1.3)
    state = {"c": torch.rand(size, generator=torch.Generator().manual_seed(1)) - 0.4}
    sim = simulation(model, size, state=state)
    c = sim.state["c"].numpy()
    for _ in range(20):
        c = c + 0.01 * bent(c**3 - c - 1.3 * bent(c))
    sim.run(20)
    np.testing.assert_allclose(sim.state["c"], c, rtol=0, atol=1e-13)


def test_an_interface_has_the_shape_of_tanh():
    """At rest it is tanh(x / sqrt(2 kappa)): thinner and thicker ones move there."""
    n, kappa, moved = 48, 4.0, []
    x = (torch.arange(n, dtype=torch.float64) - n / 2 + 0.5).abs() - n / 4
    for thick in (0.8, 1.0, 1.2):
        start = -torch.tanh(x / (thick * math.sqrt(2 * kappa)))
        model = CahnHilliard(mobility=0.02, kappa=kappa)
        sim = simulation(model, (n,), state={"c": start})
        sim.run(200)
        moved.append((sim.state["c"] - start).abs().max().item())
    assert moved[1] < 0.01
    assert min(moved[0], moved[2]) > 4 * moved[1]


def test_free_energy_falls_all_the_time():
    sim = simulation(CahnHilliard(), (24, 24))
    energies = [sim.observe()["energy"]]
    for _ in range(10):
        sim.run(50)
        energies.append(sim.observe()["energy"])
    assert energies == sorted(energies, reverse=True)
    assert energies[-1] < energies[0]


def test_a_mobility_that_is_unstable_with_this_interface_is_refused():
    text = "`mobility` must be at most 0.01389 for steps to be stable in 2 dims, got 0.02"
    with pytest.raises(ArgumentError, match=text):
        simulation(CahnHilliard(mobility=0.02, kappa=2.0), (8, 8))
