"""Burgers: the viscous shock of Cole and Hopf, speeds, bounds, and unstable steps."""

import pytest
import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.pde import Burgers


def later(model: Burgers, u: Tensor, steps: int) -> Tensor:
    sim = Simulation(
        model, size=u.shape, state={"u": u}, dtype=torch.float64, compiled=False, device="cpu"
    )
    sim.run(steps)
    return sim.state["u"]


def test_a_thick_shock_keeps_the_shape_of_the_exact_solution():
    """A step from 1 to 0 becomes (1 - tanh((x - t / 2) / (4 nu))) / 2."""
    n, viscosity, dt, steps = 400, 4.0, 0.1, 600
    x = torch.arange(n, dtype=torch.float64)
    # The other end of the periodic block is a wave that thins out, far away.
    start = 0.5 * (torch.tanh((x - 40) / 4) - torch.tanh((x - 250) / (4 * viscosity)))
    found = later(Burgers(viscosity=viscosity, dt=dt), start, steps)[220:380]
    exact = 0.5 * (1 - torch.tanh((x - 250 - dt * steps / 2) / (4 * viscosity)))[220:380]
    assert (found - exact).abs().max() < 0.02


def test_a_step_up_opens_into_a_fan():
    """u = x / t between the two values; upwind alone would keep the step."""
    n, dt, steps = 200, 0.4, 100
    start = torch.full((n,), -1.0, dtype=torch.float64)
    start[n // 2 :] = 1
    found = later(Burgers(viscosity=0.0, dt=dt), start, steps)
    x = torch.arange(n, dtype=torch.float64) - n // 2 + 0.5
    inner = x.abs() < 0.5 * dt * steps
    assert (found - x / (dt * steps))[inner].abs().max() < 0.05


@pytest.mark.parametrize("size", [(64,), (24, 32)])
def test_no_new_extremes_appear(size: tuple[int, ...]):
    u = torch.rand(size, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 0.5
    found = later(Burgers(viscosity=0.0, dt=0.5), u, 60)
    assert found.max() <= u.max() + 1e-14
    assert found.min() >= u.min() - 1e-14


def test_a_viscosity_that_is_unstable_with_this_step_is_refused():
    with pytest.raises(
        ArgumentError, match=r"`viscosity` must be at most 1.25 .* 2 dims, got 2"
    ):
        Simulation(Burgers(viscosity=2.0), size=(8, 8), compiled=False)
