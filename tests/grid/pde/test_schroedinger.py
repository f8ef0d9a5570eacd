"""Schroedinger: dispersion, a norm that is kept exactly, a spreading packet, tunnels."""

import math

import pytest
import torch
from hypothesis import given, settings, strategies as st

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.pde import Schroedinger


def simulation(size: tuple[int, ...], dt: float = 0.2, **options: object) -> Simulation:
    return Simulation(
        Schroedinger(dt=dt),
        size=size,
        dtype=torch.float64,
        compiled=False,
        device="cpu",
        **options,  # pyright: ignore[reportArgumentType]
    )


@settings(max_examples=10)
@given(st.integers(-4, 4), st.integers(-4, 4), st.floats(0.05, 0.3))
def test_a_plane_wave_turns_by_the_dispersion_of_the_scheme(down: int, right: int, dt: float):
    rows, columns, steps = 12, 16, 11
    ky, kx = 2 * math.pi * down / rows, 2 * math.pi * right / columns
    turn = 2 * math.asin(dt * (2 - math.cos(ky) - math.cos(kx)) / 2)
    y = ky * torch.arange(rows, dtype=torch.float64)[:, None]
    phase = y + kx * torch.arange(columns, dtype=torch.float64)
    sim = simulation(
        (rows, columns),
        dt,
        state={"re": torch.cos(phase), "im": torch.sin(phase - turn / 2)},
        inputs={"potential": torch.zeros(rows, columns)},
    )
    sim.run(steps)
    torch.testing.assert_close(
        sim.state["re"], torch.cos(phase - turn * steps), rtol=0, atol=1e-11
    )


@pytest.mark.parametrize("size", [(64,), (24, 32)])
def test_the_probability_of_visscher_is_kept_exactly(size: tuple[int, ...]):
    """Of a real part, and the imaginary parts before and after it."""
    sim = simulation(size)
    before, norms = sim.state, []
    for _ in range(30):
        sim.step()
        now = sim.state
        norms.append((now["re"] ** 2 + before["im"] * now["im"]).sum().item())
        before = now
    assert norms == pytest.approx([norms[0]] * 30, rel=1e-12)


def test_a_packet_spreads_as_in_theory():
    """Its width grows as sqrt(1 + (t / (2 w^2))^2)."""
    n, width, steps, dt = 256, 8.0, 500, 0.2
    x = torch.arange(n, dtype=torch.float64) - n // 2
    state = {"re": torch.exp(-(x**2) / (4 * width**2)), "im": torch.zeros(n)}
    sim = simulation((n,), dt, state=state, inputs={"potential": torch.zeros(n)})
    sim.run(steps)
    density = sim.view("density")
    found = ((x**2 * density).sum() / density.sum()).sqrt().item()
    assert found == pytest.approx(width * math.hypot(1, dt * steps / (2 * width**2)), rel=0.01)


def test_a_wall_lets_little_through_and_its_slits_some():
    behind = {}
    for size in [(96,), (64, 96)]:
        sim = simulation(size)
        sim.run(350)
        density = sim.view("density")
        behind[len(size)] = (density[..., 54:].sum() / density.sum()).item()
    assert behind[1] < behind[2] < 0.9


def test_a_step_that_is_unstable_in_so_many_dims_is_refused():
    with pytest.raises(ArgumentError, match=r"`dt` must be at most 0.3333 .* 2 dims, got 0.5"):
        simulation((8, 8), 0.5)
