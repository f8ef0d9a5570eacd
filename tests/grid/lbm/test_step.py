"""One step: streaming, rest, viscosity, forces, maps of viscosity."""

import math

import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.lbm import (
    D2Q9,
    D3Q19,
    D3Q27,
    Flow,
    HalfWay,
    Lattice,
    TaylorGreen,
    at_equilibrium,
    ball,
)

LATTICES = pytest.mark.parametrize("lattice", [D2Q9, D3Q19, D3Q27], ids=lambda x: x.name)
SIZES = {2: (6, 8), 3: (4, 5, 6)}


def run(flow: Flow, size: tuple[int, ...], steps: int, **more) -> Simulation:
    sim = Simulation(flow, size=size, dtype=torch.float64, compiled=False, **more)
    sim.run(steps)
    return sim


@LATTICES
def test_rest_stays_rest_to_the_last_bit(lattice: Lattice):
    sim = Simulation(Flow(lattice=lattice), size=SIZES[lattice.rank], compiled=False)
    sim.run(5)
    assert not sim.state["f"].any()


@LATTICES
def test_a_population_arrives_where_its_velocity_points(lattice: Lattice):
    size = SIZES[lattice.rank]
    for i, c in enumerate(lattice.velocities):
        f = torch.zeros(lattice.count, *size, dtype=torch.float64)
        f[(i, *[2] * lattice.rank)] = 1e-3
        sim = run(Flow(lattice=lattice), size, 1, state={"f": f})
        mass = sim.view("density") - 1
        there = tuple(2 + x for x in c)
        assert mass[there] == pytest.approx(1e-3)
        mass[there] = 0
        assert mass.abs().max() < 1e-15


@LATTICES
def test_mass_and_momentum_of_a_closed_box_are_kept(lattice: Lattice):
    size = SIZES[lattice.rank]
    noise = torch.rand(lattice.count, *size, generator=torch.Generator().manual_seed(3))
    sim = Simulation(
        Flow(lattice=lattice, viscosity=0.1),
        size=size,
        state={"f": 0.01 * noise.double()},
        dtype=torch.float64,
        compiled=False,
    )
    before = sim.observe()
    sim.run(50)
    after = sim.observe()
    for name in ("mass", "momentum_x", "momentum_y"):
        assert after[name] == pytest.approx(before[name], rel=1e-13, abs=1e-13)
    assert after["kinetic_energy"] < before["kinetic_energy"]
    assert sim.model.conserved == ("mass",)


def shear_wave(size: tuple[int, int], generator: torch.Generator):
    y = 2 * math.pi * torch.arange(size[0], dtype=torch.float64) / size[0]
    rest = torch.zeros(size, dtype=torch.float64)
    return rest + 1, [rest, 0.01 * torch.sin(y).unsqueeze(1) + rest]


def decay(sim: Simulation, steps: int) -> float:
    """The rate at which the speed of a shear wave falls."""
    first = sim.view("velocity_x").norm()
    sim.run(steps)
    return math.log(first / sim.view("velocity_x").norm()) / steps


@pytest.mark.parametrize("collision", ["bgk", "trt", "regularized"])
def test_a_shear_wave_decays_with_the_viscosity(collision: str):
    size, viscosity = (48, 1), 0.05
    sim = run(Flow(collision=collision, viscosity=viscosity, start=shear_wave), size, 30)
    wanted = viscosity * (2 * math.pi / size[0]) ** 2
    assert decay(sim, 100) == pytest.approx(wanted, rel=3e-3)


def test_a_map_multiplies_the_viscosity():
    size = (16, 1)
    plain = run(Flow(viscosity=0.08, start=shear_wave), size, 20)
    twice = Flow(viscosity=0.04, viscosity_map=lambda s: torch.full(s, 2.0), start=shear_wave)
    mapped = run(twice, size, 20)
    torch.testing.assert_close(mapped.state["f"], plain.state["f"], rtol=0, atol=1e-16)
    assert [known.name for known in twice.inputs] == ["viscosity_map"]


def test_a_map_may_change_from_cell_to_cell():
    size = (32, 32)
    half = torch.ones(size)
    half[:, 16:] = 20
    sim = run(Flow(viscosity=0.01, viscosity_map=half, start=waves), size, 60)
    speed = sim.view("speed") ** 2
    assert speed[:, 2:14].sum() > 1.2 * speed[:, 18:30].sum()


def waves(size: tuple[int, int], generator: torch.Generator):
    return TaylorGreen(velocity=0.02).exact(size)


def test_a_map_of_the_wrong_shape_is_refused():
    flow = Flow(viscosity_map=torch.ones(3, 3))
    with pytest.raises(ArgumentError, match=r"`viscosity_map` has the shape \(3, 3\), but the"):
        Simulation(flow, size=(4, 4))
    with pytest.raises(ArgumentError, match=r"`viscosity_map` must be above 0 everywhere"):
        Simulation(Flow(viscosity_map=torch.zeros(4, 4)), size=(4, 4))


@LATTICES
def test_a_force_moves_the_fluid_by_newton(lattice: Lattice):
    size = SIZES[lattice.rank]
    force = (1e-4, 0, 3e-4)[-lattice.rank :]
    sim = run(Flow(lattice=lattice, force=force), size, 10)
    steps = 10
    for view, f in zip(("velocity_y", "velocity_x"), force[-2:], strict=True):
        torch.testing.assert_close(
            sim.view(view), torch.full(size, steps * f, dtype=torch.float64)
        )


def test_a_force_may_be_named_after_a_parameter():
    named = run(Flow(force=(0, "viscosity"), viscosity=1e-3), (4, 4), 5)
    plain = run(Flow(force=(0, 1e-3), viscosity=1e-3), (4, 4), 5)
    torch.testing.assert_close(named.state["f"], plain.state["f"], rtol=0, atol=1e-18)


def test_a_periodic_flow_has_no_inputs():
    assert Flow().inputs == ()
    assert TaylorGreen().inputs == ()
    assert [known.name for known in Flow(boundaries=[HalfWay(ball((4, 4), 2))]).inputs] == [
        "boundary 0 links"
    ]


def test_runs_of_a_batch_are_independent():
    sim = Simulation(TaylorGreen(reynolds=10), size=(8, 8), batch=2, compiled=False)
    one = Simulation(TaylorGreen(reynolds=10), size=(8, 8), compiled=False)
    sim.run(5)
    one.run(5)
    assert torch.equal(sim.state["f"][0], one.state["f"])
    assert torch.equal(sim.state["f"][1], one.state["f"])


def test_half_precision_storage_stays_close():
    size = (32, 32)
    full = Simulation(TaylorGreen(reynolds=20), size=size, compiled=False)
    half = Simulation(
        TaylorGreen(reynolds=20), size=size, storage=torch.float16, compiled=False
    )
    full.run(100)
    half.run(100)
    assert half.state["f"].dtype == torch.float16
    error = (half.view("velocity_x") - full.view("velocity_x")).norm()
    assert 0 < error < 2e-3 * full.view("velocity_x").norm()
    # Rounding to eleven bits lets the mass wander by about 1e-5.
    assert half.observe()["mass"] == pytest.approx(32 * 32, rel=5e-5)


def test_views_know_the_flow_they_were_made_from():
    size = (12, 16)
    density, (v, u) = waves(size, torch.Generator())
    state = {"f": at_equilibrium(D2Q9, density, [v, u])}
    flow = Flow()
    torch.testing.assert_close(flow.density(state), density)
    torch.testing.assert_close(flow.pressure(state), (density - 1) / 3)
    torch.testing.assert_close(flow.velocity_x(state), u)
    torch.testing.assert_close(flow.velocity_y(state), v)
    torch.testing.assert_close(flow.speed(state), (u**2 + v**2).sqrt())
    # Central differences of a sine are its cosine times this.
    ky, kx = (math.sin(2 * math.pi / n) for n in size)
    y, x = (2 * math.pi * torch.arange(n, dtype=torch.float64) / n for n in size)
    y = y.unsqueeze(1)
    amplitude = 0.02 * (size[0] / size[1] * kx * torch.ones(()) + ky)
    torch.testing.assert_close(
        flow.vorticity(state), amplitude * torch.cos(x) * torch.cos(y), atol=1e-9, rtol=1e-6
    )


def test_views_and_observables_fit_the_dims():
    assert "velocity_z" not in Flow().views()
    assert "velocity_z" in Flow(lattice=D3Q19).views()
    assert "momentum_z" not in Flow().observables()
    assert "drag" not in Flow().observables()
    assert "drag" in Flow(boundaries=[HalfWay(ball((4, 4), 2))]).observables()


def test_a_viscosity_too_small_for_the_grid_is_refused():
    with pytest.raises(
        ArgumentError, match=r"tau = 0\.500003, and below 0\.5001 nothing damps"
    ):
        Simulation(Flow(viscosity=1e-6), size=(8, 8))
    with pytest.raises(ArgumentError, match=r"`viscosity` must be above 0, got -1"):
        Flow(viscosity=-1)


def test_a_case_steps_only_where_it_knows_its_grid():
    with pytest.raises(ArgumentError, match=r"step `model\.fitted\(size\)`"):
        TaylorGreen().step({}, {}, {})
