"""Gas: contacts, sound, symmetry, order, and what must stay the same."""

import math

import pytest
import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.pde import Gas


def simulation(model: Gas, rho: Tensor, u: Tensor, v: Tensor, p: Tensor) -> Simulation:
    energy = p / (model.gamma - 1) + 0.5 * rho * (u * u + v * v)
    state = {"rho": rho, "mx": rho * u, "my": rho * v, "energy": energy}
    return Simulation(
        model, size=rho.shape, state=state, dtype=torch.float64, compiled=False, device="cpu"
    )


def same(value: float, size: tuple[int, ...]) -> Tensor:
    return torch.full(size, value, dtype=torch.float64)


def test_a_contact_at_rest_stays_sharp():
    """Gases of another density at the same pressure, beside each other."""
    size = (6, 16)
    rho = same(1.0, size)
    rho[:, 4:9] = 0.125
    sim = simulation(Gas(), rho, same(0, size), same(0, size), same(1, size))
    sim.run(40)
    torch.testing.assert_close(sim.state["rho"], rho, rtol=0, atol=1e-13)


def density_error(n: int) -> float:
    """A wave of density that is carried along the diagonal, after an eighth of its way."""
    x = 2 * math.pi * (torch.arange(n, dtype=torch.float64) + 0.5) / n
    rho = 1 + 0.2 * torch.sin(x[:, None] + x)
    size, steps = (n, n), n
    sim = simulation(Gas(dt=0.125), rho, same(1, size), same(1, size), same(1, size))
    sim.run(steps)
    turn = 4 * math.pi * 0.125 * steps / n
    exact = 1 + 0.2 * torch.sin(x[:, None] + x - turn)
    return (sim.state["rho"] - exact).abs().mean().item()


def test_it_is_of_second_order_where_it_is_smooth():
    coarse, fine = (density_error(n) for n in (20, 40))
    assert math.log2(coarse / fine) == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("gamma", [1.4, 5 / 3])
def test_weak_sound_travels_at_its_speed(gamma: float):
    n, dt, steps = 48, 0.125, 100
    c = math.sqrt(gamma)
    x = (2 * math.pi * torch.arange(n, dtype=torch.float64) / n).expand(2, n)
    wave, zero = 1e-4 * torch.sin(x), torch.zeros_like(x)
    sim = simulation(Gas(gamma=gamma, dt=dt), 1 + wave, c * wave, zero, 1 + gamma * wave)
    sim.run(steps)
    later = 1e-4 * torch.sin(x - 2 * math.pi * c * dt * steps / n)
    torch.testing.assert_close(sim.state["rho"] - 1, later, rtol=0, atol=6e-6)


def test_both_axes_and_both_directions_are_alike():
    x = torch.arange(25, dtype=torch.float64) - 12
    hot = 1 + 4.0 * (x[:, None] ** 2 + x**2 < 16)
    zero = torch.zeros_like(hot)
    sim = simulation(Gas(dt=0.1), torch.ones_like(hot), zero, zero, hot)
    before = [sim.state[name].sum().item() for name in ("mx", "my")]
    sim.run(40)
    rho = sim.state["rho"]
    for twin in (rho.T, rho.flip(0), rho.flip(1)):
        torch.testing.assert_close(rho, twin, rtol=0, atol=1e-12)
    assert [sim.state[name].sum().item() for name in ("mx", "my")] == pytest.approx(
        before, abs=1e-11
    )
    assert sim.view("pressure").min() > 0


def test_streams_in_opposite_directions_roll_up():
    sim = Simulation(Gas(dt=0.2), size=(32, 32), compiled=False, device="cpu")
    sim.run(100)
    disturbed = sim.state["my"].abs().max()
    sim.run(200)
    assert sim.state["my"].abs().max() > 1.5 * disturbed


def test_a_gas_has_more_heat_at_constant_pressure():
    with pytest.raises(ArgumentError, match=r"`gamma` must be above 1 .*got 1"):
        Gas(gamma=1)
