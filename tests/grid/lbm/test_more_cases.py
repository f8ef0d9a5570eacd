"""The step in a channel, grains, eddies in space, and an outlet for sound."""

import math

import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.grid import Model, Simulation
from hotgrid.grid.lbm import (
    BackwardFacingStep,
    ExtrapolationOutlet,
    Face,
    Flow,
    FreeSlip,
    NonReflectingOutlet,
    PorousMedium,
    TaylorGreen3D,
    ZouHeVelocity,
)


def simulation(model: Model, size: tuple[int, ...]) -> Simulation:
    return Simulation(model, size=size, dtype=torch.float64, compiled=False, device="cpu")


def test_an_eddy_forms_behind_a_step_and_grows():
    model = BackwardFacingStep(reynolds=60, entry=1.0)
    sim = simulation(model, (12, 60))
    assert sim.observe()["reattachment"] == 0
    found = []
    for _ in range(2):
        sim.run(250)
        found.append(sim.observe()["reattachment"])
    assert 0 < found[0] < found[1] < 4
    solid = model.step_cells((12, 60))
    assert solid.sum() == 6 * 6
    assert sim.view("speed")[solid].max() == 0
    # All that comes in goes along every column.
    through = sim.view("velocity_x").sum(0)
    wanted = model.velocity * model.profile((12, 60))[:, 0].sum()
    assert through[10:-5].mean().item() == pytest.approx(wanted.item(), rel=0.05)


def test_a_grid_too_small_for_a_step_is_refused():
    with pytest.raises(ArgumentError, match=r"on a grid of \(16, 20\) the step is 8 cells"):
        simulation(BackwardFacingStep(), (16, 20))


def reflected(outlet: Face, stream: float) -> float:
    """What part of a pulse of sound is left in the grid after it has met a face."""
    n = 100
    pulse = torch.exp(-(((torch.arange(n, dtype=torch.float64) - 50) / 8) ** 2))

    def start(size: tuple[int, ...], generator: torch.Generator):
        wave = (1e-3 * pulse).expand(size)
        return 1 + wave, [torch.zeros_like(wave), wave / math.sqrt(3) + stream]

    flow = Flow(
        boundaries=[ZouHeVelocity("x-", velocity=(0, stream)), outlet],
        viscosity=0.01,
        start=start,
    )
    sim = simulation(flow, (2, n))
    sim.run(round(85 / (1 / math.sqrt(3) + stream)), progress=False)
    return (sim.view("density") - 1).abs().max().item() / 1e-3


@pytest.mark.parametrize("stream", [0.0, 0.1])
def test_sound_leaves_through_an_outlet_that_does_not_reflect(stream: float):
    assert reflected(NonReflectingOutlet("x+"), stream) < 0.03
    assert reflected(NonReflectingOutlet("x+", hold=0.003), stream) < 0.1
    assert reflected(ExtrapolationOutlet("x+"), stream) > 0.15


def test_an_outlet_that_does_not_reflect_lets_eddies_out():
    def start(size: tuple[int, ...], generator: torch.Generator):
        y, x = (torch.arange(n, dtype=torch.float64) for n in size)
        y, x = (y[:, None] - 12) / 4, (x - 20) / 4
        swirl = 0.02 * torch.exp(-(y**2 + x**2) / 2)
        return 1.0, [swirl * x, 0.1 - swirl * y]

    flow = Flow(
        boundaries=[
            NonReflectingOutlet("x+"),
            FreeSlip("y-"),
            FreeSlip("y+"),
            ZouHeVelocity("x-", velocity=(0, 0.1)),
        ],
        start=start,
    )
    sim = simulation(flow, (24, 36))
    before = sim.observe()["enstrophy"]
    sim.run(400, progress=False)
    assert sim.observe()["enstrophy"] < 0.02 * before
    assert (sim.view("velocity_x") - 0.1).abs().max() < 0.01


def test_grains_fill_the_share_that_they_should():
    for seed in (0, 1):
        model = PorousMedium(porosity=0.6, grain=4.0, seed=seed)
        solid = model.grain_cells((128, 128))
        assert 1 - solid.double().mean().item() == pytest.approx(0.6, abs=0.06)
    one = PorousMedium("square", porosity=0.8).grain_cells((40, 40))
    assert 1 - one.double().mean().item() == pytest.approx(0.8, abs=0.02)
    assert not one[0].any()


def test_mean_velocity_follows_the_law_of_darcy():
    found = []
    for gradient, viscosity in ((1e-6, 1 / 6), (3e-6, 1 / 6)):
        model = PorousMedium("square", porosity=0.7, gradient=gradient, viscosity=viscosity)
        sim = simulation(model, (16, 16))
        sim.run(300)
        found.append(sim.observe()["permeability"])
    assert found[0] == pytest.approx(found[1], rel=1e-4)
    assert 0 < found[0] < 16**2


def test_what_grains_cannot_be_is_refused():
    with pytest.raises(ArgumentError, match=r"`grains` 'squre' is unknown; .* `square`\?"):
        PorousMedium("squre")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentError, match=r"`porosity` must be above 0.21"):
        PorousMedium(porosity=0.1)
    with pytest.raises(
        ArgumentError, match=r"`porosity` of 0.5 on \(16, 64\) is 25.5 cells wide"
    ):
        simulation(PorousMedium("square", porosity=0.5), (16, 64))


def test_eddies_in_space_dissipate_at_first_as_is_known():
    """Three quarters over the Reynolds number, with differences in place of derivatives."""
    n = 16
    sim = simulation(TaylorGreen3D(), (n, n, n))
    step = 2 * math.pi / n
    wanted = 0.75 / 1600 * (math.sin(step) / step) ** 2
    assert sim.observe()["dissipation"] == pytest.approx(wanted, rel=1e-6)
    energy = sim.observe()["kinetic_energy"]
    assert energy == pytest.approx(0.125 * 0.1**2 * n**3, rel=1e-2)
    sim.run(20, progress=False)
    assert 0.9 * energy < sim.observe()["kinetic_energy"] < energy


def test_eddies_in_space_need_a_lattice_in_space():
    with pytest.raises(ArgumentError, match=r"got D2Q9; in the plane there is `TaylorGreen`"):
        TaylorGreen3D("D2Q9")
