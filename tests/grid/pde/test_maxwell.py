"""Maxwell: dispersion, what is kept without an absorbing layer, glass, and wrong options."""

import math

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.pde import Maxwell


def simulation(model: Maxwell, e: Tensor, **options: object) -> Simulation:
    state = {"e": e, "hx": torch.zeros_like(e), "hy": torch.zeros_like(e)}
    return Simulation(
        model,
        size=e.shape,
        state=state,
        dtype=torch.float64,
        compiled=False,
        device="cpu",
        **options,  # pyright: ignore[reportArgumentType]
    )


@settings(max_examples=10)
@given(st.integers(0, 5), st.integers(1, 5), st.floats(0.1, 0.7))
def test_standing_waves_turn_by_the_dispersion_of_yee(down: int, right: int, courant: float):
    rows, columns, steps = 12, 16, 9
    y = 2 * math.pi * down * torch.arange(rows, dtype=torch.float64)[:, None] / rows
    x = 2 * math.pi * right * torch.arange(columns, dtype=torch.float64) / columns
    sines = math.sin(math.pi * down / rows) ** 2 + math.sin(math.pi * right / columns) ** 2
    turn = 2 * math.asin(courant * math.sqrt(sines))
    shape = torch.cos(y) * torch.cos(x)
    sim = simulation(Maxwell(margin=0, glass=1, courant=courant, absorption=0.0), shape)
    sim.run(steps)
    # The magnetic field is 0 half a step before the start.
    wanted = math.cos(turn * (steps + 0.5)) / math.cos(turn / 2) * shape
    torch.testing.assert_close(sim.state["e"], wanted, rtol=0, atol=1e-11)


def test_without_losses_an_energy_is_kept_exactly():
    """e^2 and the product of the magnetic field before and after a step."""
    e = torch.rand(16, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    sim = simulation(Maxwell(margin=0, glass=1), e)
    energies, before = [], sim.state
    for _ in range(30):
        sim.step()
        now = sim.state
        products = before["hx"] * now["hx"] + before["hy"] * now["hy"]
        energies.append((before["e"] ** 2 + products).sum().item())
        before = now
    assert energies == pytest.approx([energies[0]] * 30, rel=1e-12)


def test_light_is_slower_in_glass_by_the_root_of_its_permittivity():
    n, steps, fronts = 128, 100, []
    e = torch.exp(-((torch.arange(n, dtype=torch.float64) - 64) ** 2) / 50).expand(4, n)
    for permittivity in (1.0, 4.0):
        inputs = {"permittivity": torch.full((4, n), permittivity)}
        sim = simulation(Maxwell(margin=0, glass=1), e.clone(), inputs=inputs)
        sim.run(steps)
        fronts.append(int(sim.state["e"][0, 64:].argmax()))
    assert fronts == [pytest.approx(50, abs=1), pytest.approx(25, abs=1)]


def test_a_ball_of_glass_reflects():
    kept = {}
    for glass in (1.0, 4.0):
        sim = Simulation(Maxwell(glass=glass), size=(64, 64), compiled=False, device="cpu")
        sim.run(150)
        kept[glass] = sim.observe()["energy"]
    assert kept[4.0] > 2 * kept[1.0]


def test_wrong_options_are_refused():
    with pytest.raises(ArgumentError, match=r"`glass` must be at least 1, got 0.5"):
        Maxwell(glass=0.5)
    with pytest.raises(ArgumentError, match=r"`margin` must be at least 0, got -1"):
        Maxwell(margin=-1)
    with pytest.raises(ArgumentError, match=r"`courant` must be at most 0.7071 .*got 0.8"):
        Simulation(Maxwell(courant=0.8), size=(32, 32), compiled=False)
