"""Ising: extremes of temperature, a magnetic field, the exact energy, chess boards."""

import math

import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.pde import Ising


def simulation(model: Ising, size: tuple[int, int] = (32, 32), **options: object) -> Simulation:
    return Simulation(
        model,
        size=size,
        compiled=False,
        device="cpu",
        **options,  # pyright: ignore[reportArgumentType]
    )


def mean(sim: Simulation, name: str, looks: int) -> float:
    found = []
    for _ in range(looks):
        sim.run(4)
        found.append(sim.observe()[name])
    return sum(found) / looks


def test_half_of_the_spins_may_turn_in_a_step():
    sim = simulation(Ising(temperature=100.0))
    colour = (torch.arange(32)[:, None] + torch.arange(32)) % 2
    for turn in (0, 1, 0):
        before = sim.state["spin"]
        sim.step()
        turned = sim.state["spin"] != before
        assert turned[colour == turn].any()
        assert not turned[colour != turn].any()


def test_cold_spins_that_are_aligned_stay_so():
    aligned = {"spin": torch.ones(32, 32, dtype=torch.int8)}
    sim = simulation(Ising(temperature=0.1), state=aligned)
    sim.run(50)
    assert sim.observe() == {"magnetisation": 1, "energy": -2}


def test_hot_spins_follow_the_field_alone():
    """Far above the critical temperature, the mean spin is that of a mean field."""
    sim = simulation(Ising(temperature=50.0, field=10.0), (128, 128))
    sim.run(20)
    alone = math.tanh(10 / 50)
    # The mean field of four neighbours, to first order.
    assert mean(sim, "magnetisation", 20) == pytest.approx(
        math.tanh((10 + 4 * alone) / 50), abs=0.004
    )


def test_its_energy_above_the_critical_temperature_is_that_of_onsager():
    """At T = 3, -0.8172 a spin (Onsager 1944, by his integral)."""
    temperature = 3.0
    k = 2 * math.sinh(2 / temperature) / math.cosh(2 / temperature) ** 2
    angles = (torch.arange(20_000, dtype=torch.float64) + 0.5) * (math.pi / 2) / 20_000
    integral = (1 / (1 - k**2 * torch.sin(angles) ** 2).sqrt()).mean().item()
    rest = 2 * math.tanh(2 / temperature) ** 2 - 1
    exact = -(1 + rest * integral) / math.tanh(2 / temperature)
    assert exact == pytest.approx(-0.8172, abs=1e-3)
    sim = simulation(Ising(temperature=temperature), (128, 128))
    sim.run(100)
    assert mean(sim, "energy", 60) == pytest.approx(exact, abs=0.01)


def test_odd_sides_are_refused():
    with pytest.raises(ArgumentError, match=r"sides .* must be even, got \(7, 8\)"):
        simulation(Ising(), (7, 8))


def test_spins_are_painted_up_or_down():
    sim = simulation(Ising(), (8, 8))
    here = torch.zeros(8, 8, dtype=torch.bool)
    here[2:4] = True
    for value, spin in ((1, 1), (0, -1), (0.4, 1)):
        sim.paint("spin", here, value)
        assert bool((sim.state["spin"][here] == spin).all())
        assert bool((sim.state["spin"].abs() == 1).all())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_random_numbers_are_as_good_in_half_precision(dtype: torch.dtype):
    energies = [
        mean(simulation(Ising(temperature=3.0), (64, 64), dtype=each, seed=1), "energy", 40)
        for each in (torch.float32, dtype)
    ]
    assert energies[0] < -0.5
    assert energies[1] == pytest.approx(energies[0], abs=0.05)
