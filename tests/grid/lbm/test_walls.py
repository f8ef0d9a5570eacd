"""Walls lie where they should: exact solutions, twins, mirrors."""

import math

import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.lbm import (
    BGK,
    TRT,
    Boundary,
    Couette,
    Flow,
    FreeSlip,
    FullWay,
    HalfWay,
    Poiseuille,
    Wall,
    box,
)

D = torch.float64


def run(model, size: tuple[int, ...], steps: int, **more) -> Simulation:
    sim = Simulation(model, size=size, dtype=D, compiled=False, **more)
    sim.run(steps)
    return sim


def test_poiseuille_is_exact_to_round_off_with_trt():
    model = Poiseuille(collision=TRT(magic=3 / 16), reynolds=1, velocity=0.05)
    sim = run(model, (6, 1), 600)
    error = (sim.view("velocity_x") - model.exact((6, 1))).abs().max()
    assert error < 1e-13 * 0.05 * 6


def test_poiseuille_with_bgk_slips():
    """The twin that shows that the test above can fail."""
    model = Poiseuille(collision=BGK(), reynolds=1, velocity=0.05)
    sim = run(model, (6, 1), 600)
    assert (sim.view("velocity_x") - model.exact((6, 1))).abs().max() > 1e-3 * 0.05


@pytest.mark.parametrize("collision", ["bgk", "trt", "regularized"])
def test_couette_is_exact_to_round_off(collision: str):
    model = Couette(collision=collision, reynolds=1, velocity=0.05)
    sim = run(model, (6, 1), 600)
    assert (sim.view("velocity_x") - model.exact((6, 1))).abs().max() < 1e-13 * 0.05 * 6


def channel(walls: list[Boundary]) -> Flow:
    return Flow(boundaries=walls, force=(0, 1e-4), viscosity=0.2)


def test_solid_rows_are_walls_along_faces():
    """One solid row closes a periodic grid on both sides."""
    plates = run(channel([Wall("y-"), Wall("y+")]), (8, 2), 200)
    solid = run(channel([HalfWay(box((0, 0), (0, 1)))]), (9, 2), 200)
    torch.testing.assert_close(
        solid.state["f"][:, 1:], plates.state["f"], rtol=1e-12, atol=1e-16
    )
    assert not solid.state["f"][:, 0].any()


def test_full_way_walls_have_the_steady_flow_of_half_way_walls():
    half = run(channel([HalfWay(box((0, 0), (0, 0)))]), (5, 1), 500)
    full = run(channel([FullWay(box((0, 0), (0, 0)))]), (5, 1), 500)
    torch.testing.assert_close(
        full.view("velocity_x"), half.view("velocity_x"), rtol=1e-11, atol=1e-15
    )
    assert half.view("velocity_x").max() > 5e-4


def test_a_solid_that_moves_drags_the_fluid():
    """A row that slides in a periodic box takes all of the fluid along."""
    flow = Flow(boundaries=[HalfWay(box((0, 0), (0, 3)), velocity=(0, 0.03))], viscosity=0.2)
    sim = run(flow, (6, 4), 600)
    torch.testing.assert_close(
        sim.view("velocity_x")[1:], torch.full((5, 4), 0.03, dtype=D), rtol=1e-10, atol=0
    )
    assert not sim.view("velocity_x")[0].any()
    assert flow.conserved == ()


def test_enclosed_fluid_stays_at_rest_and_keeps_its_mass():
    walls = torch.zeros(10, 10, dtype=torch.bool)
    walls[2, 2:8] = walls[7, 2:8] = walls[2:8, 2] = walls[2:8, 7] = True
    g = torch.Generator().manual_seed(0)
    f = 0.01 * torch.rand(9, 10, 10, generator=g, dtype=D)
    f[:, 2:8, 2:8] = 0
    sim = run(Flow(boundaries=[HalfWay(walls)], viscosity=0.1), (10, 10), 0, state={"f": f})
    before = sim.observe()["mass"]
    sim.run(40)
    assert not sim.state["f"][:, 2:8, 2:8].any()
    assert sim.observe()["mass"] == pytest.approx(before, rel=1e-14)


def test_there_may_be_many_boundaries():
    """More than fit into the bits of a byte."""
    few = channel([Wall("y-"), Wall("y+")])
    many = channel([*[Wall("y-")] * 9, Wall("y+")])
    assert torch.equal(run(many, (6, 2), 20).state["f"], run(few, (6, 2), 20).state["f"])


def mirrored_waves(size: tuple[int, int], generator: torch.Generator):
    """A flow on a grid of twice the height that is its own mirror image in y."""
    y = 2 * math.pi * (torch.arange(size[0], dtype=D).unsqueeze(1) + 0.5) / 16
    x = 2 * math.pi * torch.arange(size[1], dtype=D) / size[1]
    density = 1 + 0.01 * torch.cos(y) * torch.sin(x)
    return density, [0.02 * torch.sin(y) * torch.cos(x), 0.03 * torch.cos(y) * torch.sin(x)]


@pytest.mark.parametrize("faces", [("y-", "y+"), ("y+", "y-")])
def test_free_slip_is_a_mirror(faces: tuple[str, str]):
    slip = Flow(boundaries=[FreeSlip(f) for f in faces], start=mirrored_waves, viscosity=0.05)
    half = run(slip, (8, 12), 30)
    whole = run(Flow(start=mirrored_waves, viscosity=0.05), (16, 12), 30)
    torch.testing.assert_close(whole.state["f"][:, :8], half.state["f"], rtol=1e-12, atol=1e-15)
    assert half.observe()["mass"] == pytest.approx(96, rel=1e-13)


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_walls_stand_on_every_axis_of_a_box(axis: str):
    """Plates across any axis brake the flow along the next one in the same way."""
    axes = "zyx"
    along = axes[(axes.index(axis) + 1) % 3]
    size = tuple(6 if a == axis else 2 for a in axes)
    force = tuple(1e-4 if a == along else 0 for a in axes)
    flow = Flow(
        lattice="D3Q19",
        boundaries=[Wall(f"{axis}-"), Wall(f"{axis}+")],
        force=force,
        viscosity=0.2,
    )
    sim = run(flow, size, 60)
    found = sim.view(f"velocity_{along}").movedim(axes.index(axis), 0)[:, 0, 0]
    y = torch.arange(6, dtype=D) + 0.5
    steady = 1e-4 * y * (6 - y) / (2 * 0.2)
    assert (found > 0.8 * steady).all()
    assert (found < steady).all()
    torch.testing.assert_close(found, found.flip(0), rtol=1e-12, atol=0)


def test_walls_that_are_impossible_are_refused():
    with pytest.raises(ArgumentError, match=r"`face` 'left' is unknown; use one of x-, x\+"):
        Wall("left")
    with pytest.raises(ArgumentError, match=r"there is no face 'z-' in 2 dims"):
        Simulation(Flow(boundaries=[Wall("z-")]), size=(4, 4))
    with pytest.raises(ArgumentError, match=r"can only slide along itself"):
        Simulation(Flow(boundaries=[Wall("y-"), Wall("y+", velocity=(0.1, 0))]), size=(4, 4))
    with pytest.raises(ArgumentError, match=r"`solid` has the shape \(2, 2\), but the grid is"):
        Simulation(Flow(boundaries=[HalfWay(torch.ones(2, 2))]), size=(4, 4))


def test_an_axis_is_closed_at_both_ends_or_at_none():
    one_sided = [Wall("y+")]
    with pytest.raises(ArgumentError, match=r"'y\+' has a boundary and 'y-' has none"):
        Simulation(Flow(boundaries=one_sided), size=(4, 4))
    plate = HalfWay(box((0, 0), (0, 3)))
    closed = run(Flow(boundaries=[*one_sided, plate]), (4, 4), 1)
    assert not closed.state["f"].any()
