"""A curved solid: where links are cut, and the flows and forces that mathematics knows."""

import math

import pytest
import torch
from torch import Tensor

from hotgrid.grid import Simulation
from hotgrid.grid.lbm import (
    D2Q9,
    D3Q19,
    Boundary,
    Curved,
    Flow,
    HalfWay,
    Lattice,
    SchaeferTurek,
    Wall,
)

D = torch.float64
WAYS = pytest.mark.parametrize("way", [1e-3, 0.25, 0.5, 0.6, 0.95])


def below(height: float) -> Curved:
    """Everything below a height is solid."""
    return Curved(lambda size, y, x: y - height)


def between(low: float, high: float) -> Curved:
    """A channel between two heights."""
    return Curved(lambda size, y, x: torch.minimum(y - low, high - y))


def stirred(size: tuple[int, ...], generator: torch.Generator) -> tuple[Tensor, list[Tensor]]:
    noise = torch.rand(1 + len(size), *size, generator=generator, dtype=D)
    return 1 + 0.01 * noise[0], list(0.02 * (noise[1:] - 0.3))


def simulation(model: Flow, size: tuple[int, ...]) -> Simulation:
    return Simulation(model, size=size, dtype=D, compiled=False, device="cpu")


@pytest.mark.parametrize(("height", "share"), [(2.8, 0.4), (2.5, -1.0), (2.2, -1 / 1.6)])
def test_a_link_is_cut_where_the_surface_lies(height: float, share: float):
    shares = below(height).shares(D2Q9, (12, 5))
    for plane, c in zip(shares, D2Q9.velocities[1:], strict=True):
        if c[0] == 1:
            torch.testing.assert_close(plane[3], torch.full((5,), share, dtype=D))
            assert plane[:3].eq(0).all()
            assert plane[4:].eq(0).all()
        elif c[0] == 0:
            assert plane.eq(0).all()


def test_a_surface_through_a_centre_is_a_surface_in_half_precision_too():
    up = below(3.0).shares(D2Q9, (12, 5))[D2Q9.velocities.index((1, 0)) - 1]
    assert up[3].half().ne(0).all()
    assert up[3].abs().max() < 1e-5


def test_in_a_gap_of_one_cell_nothing_is_read_from_the_solid():
    shares = between(2.8, 3.3).shares(D2Q9, (7, 4))
    across = [k for k, c in enumerate(D2Q9.velocities[1:]) if c[0]]
    assert shares[across][:, 3].eq(-1).all()
    assert between(2.8, 4.3).shares(D2Q9, (7, 4))[across][:, 3].gt(0).sum() == 3 * 4


def test_on_a_circle_every_link_ends_on_the_circle():
    centre, radius = (8.2, 7.7), 4.3
    disc = Curved(lambda size, y, x: torch.hypot(y - centre[0], x - centre[1]) - radius)
    shares = disc.shares(D2Q9, (17, 16))
    assert shares.ne(0).sum() > 50
    for plane, c in zip(shares, D2Q9.velocities[1:], strict=True):
        share = plane[plane != 0]
        way = torch.where(share > 0, share / 2, -0.5 / share)
        ends = plane.nonzero().double() - way[:, None] * torch.tensor(c)
        reach = (ends - torch.tensor(centre)).norm(dim=1)
        torch.testing.assert_close(reach, torch.full_like(reach, radius))


def test_half_way_between_cells_it_is_the_half_way_wall():
    size = (12, 5)
    rows = torch.arange(size[0])[:, None].expand(size)
    walls: list[Boundary] = [between(2.5, 8.5), HalfWay((rows < 3) | (rows > 8))]
    models = [Flow(boundaries=[wall], viscosity=0.1, start=stirred) for wall in walls]
    sims = [simulation(model, size) for model in models]
    for sim in sims:
        sim.run(30)
    curved, stairs = (sim.state for sim in sims)
    torch.testing.assert_close(curved["f"], stairs["f"], rtol=0, atol=1e-15)
    assert curved["f"].abs().max() > 1e-3
    found, wanted = (
        torch.stack(model.force_on_obstacles(state))
        for model, state in zip(models, (curved, stairs), strict=True)
    )
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-14)
    assert wanted.abs().max() > 1e-5


@pytest.mark.parametrize("lattice", [D2Q9, D3Q19], ids=lambda x: x.name)
def test_the_solid_gets_the_momentum_that_the_fluid_loses(lattice: Lattice):
    def distance(size: tuple[int, ...], *at: Tensor) -> Tensor:
        return torch.stack([x - 4.2 for x in at]).norm(dim=0) - 2.3

    flow = Flow(lattice=lattice, boundaries=[Curved(distance)], start=stirred, viscosity=0.05)
    sim = simulation(flow, (9, 10, 11)[-lattice.rank :])
    for _ in range(3):
        before = carried(sim, lattice)
        force = torch.stack(flow.force_on_obstacles(sim.state))
        sim.run(1)
        torch.testing.assert_close(carried(sim, lattice) - before, -force, rtol=0, atol=1e-13)
    assert force.abs().max() > 1e-5


def carried(sim: Simulation, lattice: Lattice) -> Tensor:
    """The momentum of the fluid along each axis."""
    return torch.tensor(lattice.velocities, dtype=D).T @ sim.state["f"].flatten(1).sum(1)


@WAYS
def test_a_sheared_flow_is_exact_wherever_the_surface_lies(way: float):
    rows, first, speed, viscosity = 9, 4, 1e-9, 1.0
    height = first - way
    slab = Curved(lambda size, y, x: torch.maximum(y - height, 2.5 - y))
    flow = Flow(
        # So slow that squares of the velocity, which no line follows, are round-off.
        boundaries=[slab, Wall("y-"), Wall("y+", velocity=(0, speed))],
        viscosity=viscosity,
    )
    sim = simulation(flow, (rows, 2))
    sim.run(160)
    y = torch.arange(first, rows).double()
    slope = speed / (rows - 0.5 - height)
    torch.testing.assert_close(
        sim.view("velocity_x")[first:, 0], slope * (y - height), rtol=1e-8, atol=0
    )
    seen = sim.observe()
    assert seen["drag"] == pytest.approx(2 * viscosity * slope, rel=1e-8)
    assert seen["lift"] == pytest.approx(0, abs=1e-20)


WAYS = (0.1, 0.3, 0.7, 0.95)


def parabola(rows: int, way: float) -> tuple[float, float]:
    """The error of a flow between plates in its own norm, and drag over the force on it."""
    low, high, push, viscosity = 1 - way, rows - 2 + way, 1e-6 / rows**2, 0.5
    flow = Flow(boundaries=[between(low, high)], force=(0, push), viscosity=viscosity)
    sim = simulation(flow, (rows, 2))
    sim.run(3 * rows * rows)
    y = torch.arange(1, rows - 1).double()
    exact = push / (2 * viscosity) * (y - low) * (high - y)
    gap = sim.view("velocity_x")[1:-1, 0] - exact
    return (gap.norm() / exact.norm()).item(), sim.observe()["drag"] / (push * 2 * (rows - 2))


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=[pytest.mark.long] * (way in (0.1, 0.7))) for way in WAYS]
)
def test_a_parabola_is_of_second_order_and_plates_hold_back_what_drives_it(way: float):
    (coarse, _), (fine, held) = parabola(7, way), parabola(12, way)
    order = math.log(coarse / fine) / math.log((9 + 2 * way) / (4 + 2 * way))
    assert 1.8 < order < 2.2
    assert held == pytest.approx(1, rel=1e-6)


def test_a_slow_flow_through_a_square_array_of_cylinders_has_the_drag_of_the_books():
    # A. S. Sangani and A. Acrivos, Int. J. Multiphase Flow 8 (1982) 193-206, table 1:
    # drag over viscosity and mean velocity, where cylinders fill a fifth of the space.
    known, push, viscosity = 51.53, 1e-6, 1 / 6
    errors = []
    for n in (12, 24):
        radius, middle = n * math.sqrt(0.2 / math.pi), n / 2 - 0.3

        def distance(
            size: tuple[int, int], y: Tensor, x: Tensor, r: float = radius, m: float = middle
        ) -> Tensor:
            return torch.hypot(y - m, x - m - 0.1) - r

        body = Curved(distance)
        flow = Flow(boundaries=[body], force=(0, push), viscosity=viscosity)
        sim = simulation(flow, (n, n))
        sim.run(3 * n * n // 2)
        mean = sim.view("velocity_x").mean().item()
        errors.append(abs(push * n * n / (viscosity * mean) / known - 1))
        fluid = (~body.cells((n, n))).sum().item()
        assert sim.observe()["drag"] == pytest.approx(push * fluid, rel=1e-3)
    assert errors[1] < 0.02
    assert 1.6 < math.log2(errors[0] / errors[1]) < 3


def test_half_precision_sees_the_same_surface():
    runs = [
        Simulation(SchaeferTurek(), size=(41, 60), storage=kept, compiled=False, device="cpu")
        for kept in (torch.float32, torch.float16)
    ]
    for sim in runs:
        sim.run(40)
    single, half = (sim.observe() for sim in runs)
    assert half["drag_coefficient"] == pytest.approx(single["drag_coefficient"], rel=0.03)
