"""Advection: the order of every scheme, edges, both directions, and wrong schemes."""

import math

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.pde import Advection

ORDERS = {"upwind": 1, "lax-wendroff": 2, "weno5": 5}


def blown(scheme: str, u: Tensor, courant: float, steps: int) -> Tensor:
    model = Advection(scheme, courant=courant)  # pyright: ignore[reportArgumentType]
    sim = Simulation(
        model, size=u.shape, state={"u": u}, dtype=torch.float64, compiled=False, device="cpu"
    )
    sim.run(steps)
    return sim.state["u"]


def block(n: int) -> Tensor:
    u = torch.zeros(n, dtype=torch.float64)
    u[n // 4 : n // 2] = 1
    return u


def wave_error(scheme: str, courant: float, n: int) -> float:
    x = 2 * math.pi * torch.arange(n, dtype=torch.float64) / n
    later = blown(scheme, torch.sin(x), courant, n)
    return (later - torch.sin(x - 2 * math.pi * courant)).abs().max().item()


@pytest.mark.parametrize("scheme", ORDERS)
@pytest.mark.parametrize("courant", [0.5, -0.3])
def test_every_scheme_is_of_its_order_in_both_directions(scheme: str, courant: float):
    coarse, fine = (wave_error(scheme, courant, n) for n in (32, 64))
    assert math.log2(coarse / fine) == pytest.approx(ORDERS[scheme], abs=0.15)


@settings(max_examples=10)
@given(st.sampled_from([*ORDERS]), st.sampled_from([-1.0, 1.0]), st.integers(0, 2**31))
def test_a_courant_number_of_one_moves_any_shape_by_a_cell(
    scheme: str, courant: float, seed: int
):
    u = torch.rand(3, 16, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    later = blown(scheme, u, courant, 5)
    torch.testing.assert_close(later, u.roll(5 * int(courant), -1), rtol=0, atol=1e-13)


def test_upwind_never_overshoots_and_lax_wendroff_does():
    lowest, highest = blown("upwind", block(64), 0.4, 100).aminmax()
    assert lowest >= 0
    assert highest <= 1 + 1e-14
    assert blown("lax-wendroff", block(64), 0.4, 100).max() > 1.1


def test_weno_keeps_a_block_within_its_bounds_and_sharper_than_upwind():
    later = {scheme: blown(scheme, block(64), 0.5, 128) for scheme in ORDERS}
    lowest, highest = later["weno5"].aminmax()
    assert lowest > -0.01
    assert highest < 1.01
    errors = {scheme: (u - block(64)).abs().sum() for scheme, u in later.items()}
    assert errors["weno5"] < errors["lax-wendroff"] < errors["upwind"]


def test_only_the_last_dim_is_blown_along():
    u = torch.rand(4, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rows = torch.stack([blown("weno5", row, 0.3, 7) for row in u])
    torch.testing.assert_close(blown("weno5", u, 0.3, 7), rows, rtol=0, atol=1e-15)


def test_an_unknown_scheme_is_answered_with_the_nearest():
    with pytest.raises(ArgumentError, match=r"`scheme` 'weno' is unknown; .*`weno5`\?"):
        Advection("weno")  # pyright: ignore[reportArgumentType]


def test_a_wind_of_more_than_a_cell_in_a_step_is_refused():
    with pytest.raises(ArgumentError, match=r"`courant` must be from -1 to 1, got 1.5"):
        Advection(courant=1.5)
