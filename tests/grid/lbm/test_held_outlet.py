"""An outlet that holds the density: a channel settles in place of filling up."""

import torch

from hotgrid.grid import Simulation
from hotgrid.grid.lbm import ExtrapolationOutlet, Flow, SchaeferTurek, Wall, ZouHeVelocity


def parabola(size: tuple[int, int]) -> torch.Tensor:
    y = (torch.arange(size[0], dtype=torch.float64) + 0.5) / size[0]
    return (4 * y * (1 - y)).unsqueeze(1).expand(size)


def creep(hold: float) -> tuple[float, float]:
    """How far the density of a channel is from one, and how far it went in the last steps."""
    size = (5, 10)

    def start(size: tuple[int, int], generator: torch.Generator):
        rest = torch.zeros(size, dtype=torch.float64)
        return rest + 1, [rest, 0.05 * parabola(size)]

    flow = Flow(
        boundaries=[
            ExtrapolationOutlet("x+", hold=hold),
            Wall("y-"),
            Wall("y+"),
            ZouHeVelocity("x-", velocity=(0, 0.05), profile=parabola),
        ],
        viscosity=0.1,
        start=start,
    )
    sim = Simulation(flow, size=size, dtype=torch.float64, compiled=False)
    sim.run(300)
    before = sim.observe()["mass"] / 50 - 1
    sim.run(50)
    after = sim.observe()["mass"] / 50 - 1
    return after, after - before


def test_a_held_density_settles_and_one_that_is_not_creeps():
    _, moved = creep(hold=0.0)
    assert abs(moved) > 0.05
    settled, moved = creep(hold=0.2)
    assert abs(settled) < 0.06
    assert abs(moved) < 1e-6


def test_the_benchmark_is_held_as_firmly_on_every_grid():
    model = SchaeferTurek()
    assert model.of_grid((41, 221))["hold"] == 2 / 221
    assert model.of_grid((82, 441))["hold"] == 2 / 441
