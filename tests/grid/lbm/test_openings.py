"""Inlets and outlets give cells the velocity or pressure they promise."""

import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.lbm import (
    ExtrapolationOutlet,
    Flow,
    Site,
    Wall,
    ZouHePressure,
    ZouHeVelocity,
    moments,
)
from hotgrid.grid.lbm._lattice import find_lattice

D = torch.float64
FACES = pytest.mark.parametrize(
    ("name", "face"),
    [
        (name, axis + end)
        for name in ("D2Q9", "D3Q19", "D3Q27")
        for axis in "xyz"[: int(name[1])]
        for end in "-+"
    ],
)


class Always(Site):
    """A site where every cell is on the face."""

    def marked(self) -> torch.Tensor:
        return torch.ones(5, dtype=torch.bool)


def pulled(name: str) -> tuple[Always, list[torch.Tensor]]:
    lattice = find_lattice(name)
    g = torch.Generator().manual_seed(1)
    planes = 0.02 * torch.rand(lattice.count, 5, generator=g, dtype=D)
    return Always(lattice, None, {}, {}, 0), list(planes)  # pyright: ignore[reportArgumentType]


@FACES
def test_a_velocity_inlet_has_its_velocity(name: str, face: str):
    site, planes = pulled(name)
    rank = site.lattice.rank
    wanted = (0.03, -0.02, 0.05)[-rank:]
    inlet = ZouHeVelocity(face, velocity=wanted)
    found = inlet.select(site, planes)
    excess, momentum = moments(site.lattice, found)
    for m, u in zip(momentum, wanted, strict=True):
        torch.testing.assert_close(m / (1 + excess), torch.full((5,), u, dtype=D))
    entering = set(inlet.entering(site.lattice))
    for i in range(site.lattice.count):
        assert (i in entering) != torch.equal(found[i], planes[i])


@FACES
def test_a_pressure_outlet_has_its_density_and_flows_straight(name: str, face: str):
    site, planes = pulled(name)
    rank = site.lattice.rank
    outlet = ZouHePressure(face, density=1.02)
    excess, momentum = moments(site.lattice, outlet.select(site, planes))
    torch.testing.assert_close(excess, torch.full((5,), 0.02, dtype=D))
    for axis, m in enumerate(momentum):
        if axis != outlet.axis(rank):
            assert m.abs().max() < 1e-15


def test_two_dims_agree_with_the_formulas_of_zou_and_he():
    site, g = pulled("D2Q9")
    f = dict(zip(site.lattice.velocities, g, strict=True))
    f = {c: x + w for (c, x), w in zip(f.items(), site.lattice.weights, strict=True)}
    uy, ux = 0.02, 0.05
    around = f[0, 0] + f[1, 0] + f[-1, 0]
    rho = (around + 2 * (f[0, -1] + f[1, -1] + f[-1, -1])) / (1 - ux)
    aside = (f[1, 0] - f[-1, 0]) / 2
    east = f[0, -1] + 2 / 3 * rho * ux
    north_east = f[-1, -1] - aside + rho * ux / 6 + rho * uy / 2
    found = ZouHeVelocity("x-", velocity=(uy, ux)).select(site, g)
    index = site.lattice.velocities.index
    torch.testing.assert_close(found[index((0, 1))], east - 1 / 9)
    torch.testing.assert_close(found[index((1, 1))], north_east - 1 / 36)


def test_an_even_stream_passes_unchanged():
    def stream(size: tuple[int, int], generator: torch.Generator):
        rest = torch.zeros(size, dtype=D)
        return rest + 1, [rest, rest + 0.05]

    flow = Flow(
        boundaries=[ZouHeVelocity("x-", velocity=(0, 0.05)), ExtrapolationOutlet("x+")],
        start=stream,
        viscosity=0.02,
    )
    sim = Simulation(flow, size=(4, 12), dtype=D, compiled=False)
    before = sim.state["f"]
    sim.run(50)
    torch.testing.assert_close(sim.state["f"], before, rtol=0, atol=1e-14)
    assert flow.conserved == ()


def test_a_channel_keeps_its_profile_through_the_outlet():
    def parabola(size: tuple[int, int], generator: torch.Generator):
        y = (torch.arange(size[0], dtype=D) + 0.5) / size[0]
        along = (0.04 * y * (1 - y)).unsqueeze(1).expand(size)
        return torch.ones(size, dtype=D), [torch.zeros(size, dtype=D), along]

    def profile(size: tuple[int, int]) -> torch.Tensor:
        return parabola(size, torch.Generator())[1][1] / 0.01

    flow = Flow(
        boundaries=[
            ExtrapolationOutlet("x+"),
            Wall("y-"),
            Wall("y+"),
            ZouHeVelocity("x-", velocity=(0, 0.01), profile=profile),
        ],
        start=parabola,
        viscosity=0.05,
    )
    sim = Simulation(flow, size=(8, 16), dtype=D, compiled=False)
    sim.run(600)
    found, wanted = sim.view("velocity_x")[:, -1], profile((8, 16))[:, -1]
    assert found.max() > 0.008
    torch.testing.assert_close(found / found.max(), wanted / wanted.max(), rtol=0, atol=0.02)


def test_pressures_at_both_ends_drive_a_channel():
    height, length, drop, viscosity = 8, 24, 0.003, 0.3
    flow = Flow(
        boundaries=[
            Wall("y-"),
            Wall("y+"),
            ZouHePressure("x-", density=1 + drop),
            ZouHePressure("x+"),
        ],
        viscosity=viscosity,
    )
    sim = Simulation(flow, size=(height, length), dtype=D, compiled=False)
    sim.run(1200)
    # The start leaves a ripple from column to column that no lattice of this kind damps;
    # the mean over an even number of columns is free of it.
    middle = sim.view("velocity_x")[:, 4:-4].mean(1)
    y = torch.arange(height, dtype=D) + 0.5
    push = drop / 3 / (length - 1)
    torch.testing.assert_close(
        middle, push * y * (height - y) / (2 * viscosity), rtol=1e-2, atol=0
    )
    pressure = sim.view("pressure")[height // 2]
    torch.testing.assert_close(
        pressure, torch.linspace(drop / 3, 0, length, dtype=D), rtol=0, atol=2e-3 * drop
    )


def test_a_profile_shapes_the_inlet_and_a_parameter_scales_it():
    profile = torch.tensor([0.0, 1.0, 0.5, 0.0], dtype=D).unsqueeze(1).expand(4, 8)
    flow = Flow(
        boundaries=[
            ZouHeVelocity("x-", velocity=(0, "viscosity"), profile=profile),
            ZouHePressure("x+"),
        ],
        viscosity=0.05,
    )
    sim = Simulation(flow, size=(4, 8), dtype=D, compiled=False)
    sim.run(20)
    # A collision keeps the momentum that the inlet set.
    torch.testing.assert_close(
        sim.view("velocity_x")[:, 0], 0.05 * profile[:, 0], rtol=0, atol=1e-15
    )


def test_sound_leaves_through_the_outlet():
    def pulse(size: tuple[int, int], generator: torch.Generator):
        x = torch.arange(size[1], dtype=D)
        density = 1 + 0.001 * torch.exp(-(((x - 20) / 4) ** 2)).expand(size)
        # A wave that runs to the right: velocity is sound times the density.
        return density, [torch.zeros(size, dtype=D), (density - 1) * 3**-0.5]

    left = []
    for end in (ExtrapolationOutlet, Wall):
        flow = Flow(boundaries=[end("x-"), end("x+")], start=pulse, viscosity=0.02)
        sim = Simulation(flow, size=(1, 60), dtype=D, compiled=False)
        sim.run(90)
        left.append(sim.view("pressure").abs().max().item())
    # A wave meets the outlet as it would meet a medium of 1 / sqrt(3) the resistance.
    assert left[0] == pytest.approx((2 - 3**0.5) * left[1], rel=0.02)


def test_a_profile_of_the_wrong_shape_is_refused():
    flow = Flow(boundaries=[ZouHeVelocity("x-", (0, 0.1), profile=torch.ones(3)), Wall("x+")])
    with pytest.raises(ArgumentError, match=r"`profile` has the shape \(3,\), but the grid is"):
        Simulation(flow, size=(4, 8))
