"""Flows with a temperature: conduction, insulation, inlets, and what it does to the fluid."""

import pytest
import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid import Model, Simulation
from hotgrid.grid.lbm import (
    ExtrapolationOutlet,
    Flow,
    FreeSlip,
    HalfWay,
    RayleighBenard,
    ShearMixing,
    ThermalFlow,
    Wall,
    ZouHeVelocity,
    ball,
)


def simulation(model: Model, size: tuple[int, ...], **options: object) -> Simulation:
    return Simulation(
        model,
        size=size,
        dtype=torch.float64,
        compiled=False,
        device="cpu",
        **options,  # pyright: ignore[reportArgumentType]
    )


def cold(size: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.zeros(size)


@pytest.mark.parametrize(("lattice", "size"), [("D2Q9", (4, 3)), ("D3Q19", (2, 4, 3))])
def test_between_plates_the_temperature_is_a_straight_line(lattice: str, size: tuple[int, ...]):
    plates = [Wall("y-", temperature=1.0), Wall("y+", temperature=-0.5)]
    model = ThermalFlow(
        lattice=lattice, boundaries=plates, warmth=cold, diffusivity=0.2, buoyancy=0.0
    )
    sim = simulation(model, size)
    sim.run(300)
    y = (torch.arange(4, dtype=torch.float64) + 0.5) / 4
    found = sim.view("temperature").reshape(-1, 4, 3)[0]
    torch.testing.assert_close(found[:, 0], 1.0 - 1.5 * y, rtol=0, atol=1e-10)
    assert sim.view("speed").max() < 1e-12


def test_no_heat_passes_walls_and_solids_that_hold_no_temperature():
    parts = [Wall("y-"), FreeSlip("y+"), HalfWay(ball((10, 7), 3))]
    sim = simulation(ThermalFlow(boundaries=parts, buoyancy=1e-3), (20, 16))
    before = sim.observe()["heat"]
    assert "heat" in sim.model.conserved
    sim.run(200)
    assert sim.observe()["heat"] == pytest.approx(before, rel=1e-12)
    assert sim.view("speed").max() > 1e-3


def test_an_inlet_brings_its_temperature_and_an_outlet_lets_it_go():
    model = ThermalFlow(
        boundaries=[
            ExtrapolationOutlet("x+"),
            FreeSlip("y-"),
            FreeSlip("y+"),
            ZouHeVelocity("x-", velocity=(0, 0.1), temperature=0.7),
        ],
        start=lambda size, _: (1.0, [torch.zeros(size), torch.full(size, 0.1)]),
        warmth=cold,
        buoyancy=0.0,
    )
    sim = simulation(model, (4, 24))
    sim.run(100)
    halfway = sim.view("temperature")[2]
    assert halfway[4] > 0.6
    assert halfway[20] < 0.1
    sim.run(500)
    torch.testing.assert_close(
        sim.view("temperature"),
        torch.full((4, 24), 0.7, dtype=torch.float64),
        rtol=0,
        atol=1e-3,
    )


def test_without_buoyancy_the_fluid_does_not_feel_the_temperature():
    plates = [Wall("y-"), Wall("y+")]
    warm = simulation(ThermalFlow(boundaries=plates, force=(0, 1e-5), buoyancy=0.0), (12, 9))
    plain = simulation(Flow(boundaries=plates, force=(0, 1e-5)), (12, 9))
    for sim in (warm, plain):
        sim.run(40)
    torch.testing.assert_close(warm.state["f"], plain.state["f"], rtol=0, atol=1e-15)


def test_warm_fluid_rises():
    sim = simulation(ThermalFlow(), (32, 32))
    sim.run(50)
    warm = sim.view("temperature") > 0.5
    assert sim.view("velocity_y")[warm].min() > 0


def test_a_layer_turns_over_above_the_critical_number_only():
    found = []
    for rayleigh in (1000.0, 10_000.0):
        sim = simulation(RayleighBenard(rayleigh=rayleigh, velocity=0.3, ripple=0.1), (8, 16))
        sim.run(600)
        found.append(sim.observe()["nusselt"])
    assert found[0] == pytest.approx(1, abs=0.01)
    # Published: 2.1 for rolls of the critical width at 10^4.
    assert 1.5 < found[1] < 3


def test_a_dye_mixes_and_none_is_lost():
    sim = simulation(ShearMixing(velocity=0.2, steepness=10.0), (32, 32))
    before = sim.observe()
    sim.run(300)
    after = sim.observe()
    assert after["unmixed"] < 0.9 * before["unmixed"]
    assert after["heat"] == pytest.approx(before["heat"], abs=1e-10)


def test_a_stroke_changes_the_temperature_under_it_alone():
    sim = simulation(RayleighBenard(), (12, 16))
    sim.run(20)
    state, mask = sim.state, torch.zeros(12, 16, dtype=torch.bool)
    mask[3:5, 2:9] = True
    model = sim.model
    assert [brush.name for brush in model.brushes()] == ["solid", "temperature"]
    painted = {**state, **model.painted(state, "temperature", mask, 0.25)}
    found, before = (model.views()["temperature"](x) for x in (painted, state))
    torch.testing.assert_close(found[mask], torch.full((14,), 0.25, dtype=torch.float64))
    assert torch.equal(found[~mask], before[~mask])


def test_what_cannot_be_is_refused():
    hot = [Wall("y-", temperature=1.0), Wall("y+")]
    with pytest.raises(ArgumentError, match=r"has a `temperature`, and Flow carries none"):
        simulation(Flow(boundaries=hot), (8, 8))
    with pytest.raises(ArgumentError, match=r"`temperature` names the parameter `heet`"):
        simulation(ThermalFlow(boundaries=[Wall("y-", temperature="heet"), Wall("y+")]), (8, 8))
    with pytest.raises(ArgumentError, match=r"temperature of RayleighBenard .* larger diff"):
        simulation(RayleighBenard(rayleigh=1e12, prandtl=1e5), (8, 8))
