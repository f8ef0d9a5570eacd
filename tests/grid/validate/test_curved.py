"""A curved wall: where links are cut, and that it agrees with what is known."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from hotgrid.grid import Simulation
from hotgrid.grid.lbm import D2Q9, Boundary, Flow, HalfWay
from hotgrid.grid.validate._curved import Curved, force_on_surface

SIZE = (12, 5)


def below(height: float) -> Curved:
    """Everything below a height is solid."""
    return Curved(lambda size: lambda y, x: y - height)


def between(low: float, high: float) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda y, x: torch.minimum(y - low, high - y)


def flow(*boundaries: Boundary) -> Flow:
    def start(size: tuple[int, ...], generator: torch.Generator) -> tuple[Tensor, list[Tensor]]:
        noise = [torch.rand(size, generator=generator).double() for _ in range(3)]
        return 1 + 0.01 * noise[0], [0.02 * (noise[1] - 0.5), 0.02 * noise[2]]

    return Flow(boundaries=boundaries, viscosity=0.1, start=start)


def simulation(model: Flow, size: tuple[int, int] = SIZE) -> Simulation:
    return Simulation(model, size=size, dtype=torch.float64, compiled=False, device="cpu")


@pytest.mark.parametrize(("height", "share"), [(2.8, 0.4), (2.5, -1.0), (2.2, -1 / 1.6)])
def test_a_link_is_cut_where_the_surface_lies(height: float, share: float):
    shares = below(height).shares(D2Q9, SIZE)
    for plane, c in zip(shares, D2Q9.velocities[1:], strict=True):
        if c[0] == 1:
            torch.testing.assert_close(plane[3], torch.full((5,), share).double())
            assert plane[:3].eq(0).all()
            assert plane[4:].eq(0).all()
        elif c[0] == 0:
            assert plane.eq(0).all()


def test_a_surface_through_a_centre_is_a_surface():
    shares = below(3.0).shares(D2Q9, SIZE)
    up = shares[D2Q9.velocities.index((1, 0)) - 1]
    assert up[3].ne(0).all()
    assert up[3].abs().max() < 1e-12


def test_on_a_circle_every_link_ends_on_the_circle():
    centre, radius, size = (8.2, 7.7), 4.3, (17, 16)
    disc = Curved(lambda _: lambda y, x: torch.hypot(y - centre[0], x - centre[1]) - radius)
    shares = disc.shares(D2Q9, size)
    assert shares.ne(0).sum() > 50
    for plane, c in zip(shares, D2Q9.velocities[1:], strict=True):
        cells = plane.nonzero().double()
        share = plane[plane != 0]
        way = torch.where(share > 0, share / 2, -0.5 / share)
        ends = cells - way[:, None] * torch.tensor(c)
        reach = (ends - torch.tensor(centre)).norm(dim=1)
        torch.testing.assert_close(reach, torch.full_like(reach, radius))


def test_half_way_between_cells_it_is_the_half_way_wall():
    rows = torch.arange(SIZE[0])[:, None].expand(SIZE)
    curved, stairs = Curved(lambda _: between(2.5, 8.5)), HalfWay((rows < 3) | (rows > 8))
    models = [flow(wall) for wall in (curved, stairs)]
    sims = [simulation(model) for model in models]
    for sim in sims:
        sim.run(30)
    a, b = (sim.state for sim in sims)
    torch.testing.assert_close(a["f"], b["f"], rtol=0, atol=1e-15)
    assert a["f"].abs().max() > 1e-3
    force = force_on_surface(D2Q9, a["f"], curved.shares(D2Q9, SIZE))
    wanted = models[1].force_on_obstacles(b)
    torch.testing.assert_close(torch.stack(force), torch.stack(wanted), rtol=0, atol=1e-14)


def test_a_parabola_ends_on_the_surfaces_and_not_on_stairs():
    low, high, size, push, viscosity = 1.2, 13.4, (16, 3), 1e-5, 0.3
    y = torch.arange(size[0]).double()
    exact = (push / (2 * viscosity) * (y - low) * (high - y)).clamp(min=0)
    rows = y[:, None].expand(size)
    errors = []
    for wall in (Curved(lambda _: between(low, high)), HalfWay((rows < low) | (rows > high))):
        sim = simulation(Flow(boundaries=(wall,), force=(0, push), viscosity=viscosity), size)
        sim.run(500)
        gap = sim.view("velocity_x")[:, 1] - exact
        errors.append((gap.abs().max() / exact.max()).item())
    assert errors[0] < 0.02
    assert errors[1] > 3 * errors[0]
