"""Force on solids: what the fluid loses, the solid gets."""

import math

import pytest
import torch

from hotgrid.grid import Simulation
from hotgrid.grid.lbm import (
    D2Q9,
    D3Q19,
    Flow,
    FullWay,
    HalfWay,
    Lattice,
    at_equilibrium,
    ball,
    cut_links,
    exchanged_momentum,
    from_distance,
)

D = torch.float64


def stirred(size: tuple[int, ...], generator: torch.Generator):
    shape = (len(size), *size)
    velocity = 0.05 * (torch.rand(shape, generator=generator, dtype=D) - 0.5)
    return torch.ones(size, dtype=D), list(velocity)


def momentum(sim: Simulation) -> torch.Tensor:
    """What the populations carry, in the solid too: where it turns round it is on its way."""
    f = sim.state["f"]
    c = torch.tensor(sim.model.lattice.velocities, dtype=D)  # pyright: ignore[reportAttributeAccessIssue]
    return c.T @ f.flatten(1).sum(1)


@pytest.mark.parametrize("lattice", [D2Q9, D3Q19], ids=lambda x: x.name)
@pytest.mark.parametrize("velocity", [(), (0.01, 0.0, 0.02)])
def test_the_solid_gets_the_momentum_that_the_fluid_loses(
    lattice: Lattice, velocity: tuple[float, ...]
):
    size = (9, 10, 11)[-lattice.rank :]
    body = HalfWay(ball([4.2] * lattice.rank, 2.3), velocity=velocity[-lattice.rank :])
    flow = Flow(lattice=lattice, boundaries=[body], start=stirred, viscosity=0.05)
    sim = Simulation(flow, size=size, dtype=D, compiled=False)
    for _ in range(3):
        before = momentum(sim)
        force = torch.stack(flow.force_on_obstacles(sim.state))
        sim.run(1)
        torch.testing.assert_close(momentum(sim) - before, -force, rtol=0, atol=1e-13)
    assert force.abs().max() > 1e-5


def test_full_way_solids_get_it_one_step_late():
    flow = Flow(boundaries=[FullWay(ball((4.2, 5.3), 2.3))], start=stirred, viscosity=0.05)
    sim = Simulation(flow, size=(10, 12), dtype=D, compiled=False)
    for _ in range(3):
        before, state = momentum(sim), sim.state
        sim.run(1)
        # Populations turn round in the solid: twice what they carried there.
        solid = flow.solid((10, 12))
        there = sim.state["f"] * solid
        c = torch.tensor(D2Q9.velocities, dtype=D)
        turned = -2 * (c.T @ there.flatten(1).sum(1))
        torch.testing.assert_close(before - momentum(sim), turned, rtol=0, atol=1e-13)
    assert torch.stack(flow.force_on_obstacles(state)).abs().max() > 1e-5


@pytest.mark.parametrize("wall", [HalfWay, FullWay])
def test_plates_hold_back_the_force_that_drives_a_channel(wall: type):
    size, push = (9, 4), 1e-5
    flow = Flow(
        boundaries=[wall(from_distance(lambda y, x: y - 0.5))], force=(0, push), viscosity=0.3
    )
    sim = Simulation(flow, size=size, dtype=D, compiled=False)
    sim.run(700)
    seen = sim.observe()
    cells = 8 * 4
    assert seen["drag"] == pytest.approx(push * cells, rel=1e-6)
    assert seen["lift"] == pytest.approx(0, abs=1e-12)


def test_pressure_on_a_closed_body_adds_up_to_nothing():
    flow = Flow(boundaries=[HalfWay(ball((5, 6), 3))])
    f = at_equilibrium(
        D2Q9, torch.full((12, 12), 1.3, dtype=D), [torch.zeros(12, 12, dtype=D)] * 2
    )
    for part in flow.force_on_obstacles({"f": f}):
        assert part.abs() < 1e-14


def test_a_symmetric_flow_has_no_lift():
    def stream(size: tuple[int, int], generator: torch.Generator):
        rest = torch.zeros(size, dtype=D)
        return rest + 1, [rest, rest + 0.05]

    flow = Flow(boundaries=[HalfWay(ball((7.5, 8), 3.2))], start=stream, viscosity=0.05)
    sim = Simulation(flow, size=(16, 20), dtype=D, compiled=False)
    sim.run(20)
    seen = sim.observe()
    assert seen["drag"] > 1e-3
    assert abs(seen["lift"]) < 1e-13


def test_links_of_one_cell():
    solid = torch.zeros(5, 5, dtype=torch.bool)
    solid[2, 3] = True
    links = cut_links(D2Q9, solid)
    for c, cells in zip(D2Q9.velocities[1:], links[1:], strict=True):
        assert cells.tolist() == [(2 - c[0]) * 5 + 3 - c[1]]
    f = torch.zeros(9, 5, 5)
    f[1, 2, 2] = 0.25
    assert exchanged_momentum(D2Q9, f, links)[1] == pytest.approx(0.5)


def test_more_obstacles_add_up():
    one, two = HalfWay(ball((4, 4), 2)), HalfWay(ball((12, 12), 2))
    g = torch.Generator().manual_seed(4)
    f = 0.01 * torch.rand(9, 16, 16, generator=g, dtype=D)
    parts = [Flow(boundaries=[body]).drag({"f": f}) for body in (one, two)]
    both = Flow(boundaries=[one, two]).drag({"f": f})
    assert both == pytest.approx(sum(parts).item(), rel=1e-12)
    assert not math.isclose(both, 0)
