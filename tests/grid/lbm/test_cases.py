"""The cases: what each promises, on small grids."""

import math

import pytest
import torch

from hotgrid.errors import ArgumentError, UnstableError
from hotgrid.grid import Simulation
from hotgrid.grid.lbm import (
    Cavity,
    CylinderFlow,
    DoubleShear,
    Flow,
    Karman,
    Poiseuille,
    ReynoldsFlow,
    SchaeferTurek,
    TaylorGreen,
    frequency,
)

D = torch.float64


def run(model, size: tuple[int, ...], steps: int, **more) -> Simulation:
    sim = Simulation(model, size=size, dtype=D, compiled=False, **more)
    sim.run(steps)
    return sim


def test_taylor_green_decays_with_the_viscosity_to_a_thousandth():
    size = (64, 64)
    model = TaylorGreen(reynolds=5, velocity=0.02)
    sim = run(model, size, 60)
    before = sim.observe()["kinetic_energy"]
    sim.run(240)
    fall = math.log(before / sim.observe()["kinetic_energy"]) / 240
    assert fall == pytest.approx(2 * model.decay_rate(size), rel=1e-3)


def test_taylor_green_is_of_second_order():
    errors = []
    for n in (12, 24):
        model = TaylorGreen(reynolds=4, velocity=0.6 / n)
        steps = n * n // 2
        sim = run(model, (n, n), steps)
        _, (v, u) = model.exact((n, n), steps)
        error = torch.stack([sim.view("velocity_y") - v, sim.view("velocity_x") - u])
        errors.append((error.norm() / torch.stack([v, u]).norm()).item())
    assert 1.8 < math.log2(errors[0] / errors[1]) < 2.3
    assert errors[1] < 0.01


def test_taylor_green_may_have_other_sides():
    model = TaylorGreen(reynolds=5, velocity=0.01)
    sim = run(model, (16, 24), 40)
    _, (v, u) = model.exact((16, 24), 40)
    assert (sim.view("velocity_x") - u).norm() < 0.02 * u.norm()
    assert (sim.view("velocity_y") - v).norm() < 0.02 * v.norm()


def test_taylor_green_in_three_dims_loses_energy_and_no_mass():
    sim = Simulation(TaylorGreen(lattice="D3Q19"), size=(12, 12, 12), compiled=False)
    before = sim.observe()
    # Eddies of one wave have this energy for each cell.
    assert before["kinetic_energy"] == pytest.approx(12**3 * 0.1**2 / 8, rel=1e-3)
    sim.run(20)
    after = sim.observe()
    assert after["kinetic_energy"] < before["kinetic_energy"]
    assert after["mass"] == pytest.approx(12**3, rel=1e-7)
    assert abs(after["momentum_z"]) < 1e-5


def test_a_cavity_turns_with_its_lid_and_keeps_its_mass():
    sim = run(Cavity(reynolds=20), (16, 16), 500)
    u = sim.view("velocity_x")[:, 8]
    assert u[-1] > 0.05
    assert u[:10].min() < -0.005
    assert sim.observe()["mass"] == pytest.approx(256, rel=1e-12)
    # Up on the left, where the fluid comes from, down on the right, where the lid pushes it.
    v = sim.view("velocity_y")[8]
    assert v[2] > 0.004
    assert v[-3] < -0.004


def test_a_cavity_in_three_dims_is_symmetric_across():
    sim = run(Cavity(lattice="D3Q19", reynolds=10), (6, 7, 8), 30)
    u = sim.view("velocity_x")
    torch.testing.assert_close(u, u.flip(0), rtol=1e-9, atol=1e-15)


def test_double_shear_starts_with_two_streams():
    sim = run(DoubleShear(reynolds=1000, velocity=0.04), (32, 32), 0)
    u = sim.view("velocity_x")
    assert u[16].mean() == pytest.approx(0.04, rel=0.01)
    assert u[0].mean() == pytest.approx(-0.04, rel=0.01)
    assert sim.observe()["momentum_x"] == pytest.approx(0, abs=1e-12)
    sim.run(20)
    assert sim.observe()["momentum_x"] == pytest.approx(0, abs=1e-12)


def test_the_reynolds_number_is_the_same_at_every_size():
    for model in (Karman(), Cavity(), Poiseuille(), TaylorGreen(), DoubleShear()):
        for size in ((50, 80), (100, 160)):
            viscosity = (model.tau(size) - 0.5) / 3
            found = model.velocity * model.length(size) / viscosity
            assert found == pytest.approx(model.reynolds)


def test_one_model_may_run_on_grids_of_different_size():
    model = TaylorGreen(reynolds=10)
    small, large = run(model, (8, 8), 3), run(model, (16, 16), 3)
    assert torch.equal(small.state["f"], run(TaylorGreen(reynolds=10), (8, 8), 3).state["f"])
    assert torch.equal(large.state["f"], run(TaylorGreen(reynolds=10), (16, 16), 3).state["f"])
    assert model.parameters == {"reynolds": 10, "velocity": 0.1}


def test_karman_streams_and_drags():
    sim = Simulation(Karman(reynolds=50, diameter=0.2), size=(40, 80), compiled=False)
    sim.run(150)
    assert 0.09 < sim.view("velocity_x")[2, 70] < 0.12
    seen = sim.observe()
    scale = 0.5 * 0.1**2 * 8
    assert seen["drag_coefficient"] == pytest.approx(seen["drag"] / scale)
    assert seen["lift_coefficient"] == pytest.approx(seen["lift"] / scale)
    assert 1 < seen["drag_coefficient"] < 5
    assert sim.view().shape == (40, 80)


def test_schaefer_turek_has_the_measures_of_the_benchmark():
    model = SchaeferTurek(reynolds=20, velocity=0.06)
    size = model.grid(82)
    assert size == (82, 441)
    assert model.length(size) == pytest.approx(20)
    assert model.centre(size) == pytest.approx((39.5, 40))
    mean = 0.06 * 2 / 3
    assert mean * 20 / ((model.tau(size) - 0.5) / 3) == pytest.approx(20)
    profile = model.parabola(size)
    assert profile[:, 0].mean() == pytest.approx(2 / 3, rel=1e-3)
    assert profile[0, 0] == pytest.approx(4 * (0.5 / 82) * (81.5 / 82))


def test_pressure_difference_is_that_of_the_surface_in_benchmark_units():
    model = SchaeferTurek(reynolds=20, velocity=0.1)
    size = (82, 441)
    # A pressure that grows evenly along x differs by its slope times the diameter.
    x = torch.arange(size[1], dtype=D).expand(size)
    f = torch.zeros(9, *size, dtype=D)
    f[0] = -3e-4 * x
    found = model.pressure_difference({"f": f})
    scale = (0.2 / (0.1 * 2 / 3)) ** 2
    assert found == pytest.approx(1e-4 * 20 * scale)


def test_the_strouhal_number_of_a_sine():
    model: CylinderFlow = Karman(diameter=0.1)
    swing = [0.3 + math.sin(2 * math.pi * 0.004 * 10 * n) for n in range(120)]
    assert frequency(swing, every=10) == pytest.approx(0.004, rel=1e-3)
    assert model.strouhal(swing, 10, (400, 800)) == pytest.approx(0.004 * 40 / 0.1, rel=1e-3)
    with pytest.raises(ArgumentError, match=r"rises through its mean 0 times in 25 values"):
        frequency(swing[:25])


def test_invalid_numbers_are_refused():
    with pytest.raises(
        ArgumentError, match=r"`velocity` must be above 0 and at most 0\.3, got 0\.5"
    ):
        Karman(velocity=0.5)
    with pytest.raises(
        ArgumentError, match=r"is tau = 0\.500038, and below 0\.5001 .* finer grid"
    ):
        Simulation(Cavity(reynolds=1e6), size=(128, 128))
    with pytest.raises(ArgumentError, match=r"cylinder of Karman is 2\.0 cells thick"):
        Simulation(Karman(), size=(20, 80))
    with pytest.raises(
        ArgumentError, match=r"`reynold` is not a parameter of Cavity; did you mean"
    ):
        Cavity(reynold=100)
    with pytest.raises(ArgumentError, match=r"Karman runs in 2 dims"):
        Simulation(Karman(), size=(8, 8, 8))


def test_a_flow_that_breaks_says_why():
    g = torch.Generator().manual_seed(0)
    f = 0.4 * (torch.rand(9, 8, 8, generator=g) - 0.5)
    flow = Flow(viscosity=1e-4, collision="bgk")
    sim = Simulation(flow, size=(8, 8), state={"f": f}, compiled=False)
    with pytest.raises(UnstableError, match=r"tau is 0\.5003 .* Mach number is \d+\.\d\d"):
        sim.run(500)


def test_every_case_is_a_flow_with_a_reynolds_number():
    assert issubclass(Karman, ReynoldsFlow)
    assert Karman().parameters == {"reynolds": 150, "velocity": 0.1, "diameter": 0.1}
