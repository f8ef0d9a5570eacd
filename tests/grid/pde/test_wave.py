"""Waves: the dispersion relation and the energy of leapfrog, exactly, and second order."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.pde import Wave

SIZES = {1: (24,), 2: (12, 18), 3: (6, 8, 10)}


def started(model: Wave, u: Tensor, before: Tensor) -> Simulation:
    """A simulation that was at `before` a step ago."""
    return Simulation(
        model,
        size=u.shape,
        state={"u": u, "v": u - before},
        dtype=torch.float64,
        compiled=False,
        device="cpu",
    )


def phases(size: tuple[int, ...], turns: tuple[int, ...]) -> Tensor:
    axes = [
        2 * math.pi * k * torch.arange(n, dtype=torch.float64) / n
        for n, k in zip(size, turns, strict=True)
    ]
    return torch.stack(torch.meshgrid(*axes, indexing="ij")).sum(0)


@given(
    rank=st.sampled_from([1, 2, 3]),
    share=st.floats(0.05, 0.99),
    turns=st.tuples(*[st.integers(-3, 3)] * 3),
    steps=st.integers(1, 20),
)
def test_a_plane_wave_travels_by_the_discrete_dispersion_relation(
    rank: int, share: float, turns: tuple[int, ...], steps: int
):
    size, courant = SIZES[rank], share / math.sqrt(rank)
    angles = [math.pi * k / n for k, n in zip(turns[:rank], size, strict=True)]
    sine = courant * math.sqrt(sum(math.sin(angle) ** 2 for angle in angles))
    omega, kx = 2 * math.asin(sine), phases(size, turns[:rank])
    sim = started(Wave(courant=courant), torch.cos(kx), torch.cos(kx + omega))
    sim.run(steps)
    expected = torch.cos(kx - omega * steps)
    torch.testing.assert_close(sim.state["u"], expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_the_energy_of_any_state_is_kept_to_round_off(rank: int):
    generator = torch.Generator().manual_seed(rank)
    u, before = torch.rand(2, *SIZES[rank], generator=generator, dtype=torch.float64)
    sim = started(Wave(courant=0.57), u, before)
    energy = sim.observe()["energy"]
    assert energy > 0
    for _ in range(5):
        sim.run(40)
        assert sim.observe()["energy"] == pytest.approx(energy, rel=1e-12)


def test_the_energy_is_kinetic_plus_potential():
    """By hand: one cell moved by one since the last step, on a line."""
    u = torch.zeros(8, dtype=torch.float64)
    u[3] = 1
    sim = started(Wave(courant=0.5), u, torch.zeros_like(u))
    # Nothing was bent a step ago, so all of it is motion.
    assert sim.observe()["energy"] == 0.5
    still = started(Wave(courant=0.5), u, u)
    # Two slopes of one, half of the squared speed each.
    assert still.observe()["energy"] == 0.25


@pytest.mark.parametrize("rank", [1, 2])
def test_it_is_of_second_order_against_the_continuous_solution(rank: int):
    courant, errors = 0.5, []
    for n in (20, 40, 80):
        kx = phases((n,) * rank, (1,) * rank)
        omega = 2 * math.pi * math.sqrt(rank) * courant / n
        sim = started(Wave(courant=courant), torch.cos(kx), torch.cos(kx) * math.cos(omega))
        steps = round(0.3 * n / courant)
        sim.run(steps)
        exact = torch.cos(kx) * math.cos(omega * steps)
        errors.append((sim.state["u"] - exact).abs().max().item())
    orders = [math.log2(coarse / fine) for coarse, fine in pairwise(errors)]
    assert orders == pytest.approx([2, 2], abs=0.1)


def test_on_a_line_a_courant_number_of_one_moves_any_shape_exactly():
    u = torch.rand(32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    sim = started(Wave(courant=1), u, u.roll(-1))
    sim.run(9)
    torch.testing.assert_close(sim.state["u"], u.roll(9), rtol=0, atol=1e-13)


def test_the_drop_starts_at_rest():
    """Time can be turned round at rest: a step forward and a step back are the same."""
    sim = Simulation(Wave(), size=(20, 24), dtype=torch.float64, compiled=False, device="cpu")
    before = sim.state["u"] - sim.state["v"]
    sim.step()
    torch.testing.assert_close(sim.state["u"], before, rtol=0, atol=1e-15)


@pytest.mark.parametrize(("rank", "limit"), [(2, "0.7071"), (3, "0.5774")])
def test_a_courant_number_that_is_unstable_in_so_many_dims_is_refused(rank: int, limit: str):
    text = f"`courant` must be at most {limit} for steps to be stable in {rank} dims, got 0.8"
    with pytest.raises(ArgumentError, match=text):
        Simulation(Wave(courant=0.8), size=(8,) * rank, compiled=False)
