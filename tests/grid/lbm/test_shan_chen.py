"""Shan-Chen: the force by hand, one density below the critical point, two above it."""

import math

import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.lbm import D2Q9, ShanChen


def simulation(model: ShanChen, size: tuple[int, int], **options: object) -> Simulation:
    return Simulation(
        model,
        size=size,
        dtype=torch.float64,
        compiled=False,
        device="cpu",
        **options,  # pyright: ignore[reportArgumentType]
    )


def test_the_force_is_that_of_the_formula_cell_by_cell():
    g = torch.Generator().manual_seed(0)
    density = 0.5 + torch.rand(5, 6, generator=g, dtype=torch.float64)
    psi = 1 - torch.exp(-density)
    found = ShanChen().force_around(
        lambda at: torch.roll(density, (-at[0], -at[1]), (0, 1)), {"attraction": 4.7}
    )
    for y in range(5):
        for x in range(6):
            pull = [0.0, 0.0]
            for (cy, cx), w in zip(D2Q9.velocities, D2Q9.weights, strict=True):
                beside = psi[(y + cy) % 5, (x + cx) % 6].item()
                pull[0] += w * beside * cy
                pull[1] += w * beside * cx
            wanted = [4.7 * psi[y, x].item() * each for each in pull]
            assert [plane[y, x].item() for plane in found] == pytest.approx(wanted, abs=1e-15)


@pytest.mark.parametrize(("attraction", "parts"), [(3.5, False), (5.0, True)])
def test_mist_separates_above_the_critical_attraction(attraction: float, parts: bool):
    sim = simulation(ShanChen(attraction=attraction), (12, 16))
    before = sim.observe()
    sim.run(300)
    after = sim.observe()
    assert (after["contrast"] > 0.5) is parts
    assert after["mass"] == pytest.approx(before["mass"], rel=1e-12)


@pytest.mark.parametrize("attraction", [4.2, 5.0, 6.0])
def test_phases_beside_each_other_have_one_pressure(attraction: float):
    pressures = [
        rho / 3 - attraction / 6 * (1 - math.exp(-rho)) ** 2
        for rho in ShanChen(attraction=attraction).coexistence()
    ]
    assert pressures[0] == pytest.approx(pressures[1], abs=1e-4)


def test_phases_meet_at_the_critical_point():
    vapour, liquid = ShanChen(attraction=4.001).coexistence()
    assert vapour == pytest.approx(math.log(2), abs=0.06)
    assert liquid == pytest.approx(math.log(2), abs=0.06)


def test_all_momentum_stays_zero():
    """What a cell pulls its neighbour with, it is pulled back with."""
    sim = simulation(ShanChen(), (16, 20))
    sim.run(60)
    found = sim.observe()
    assert abs(found["momentum_x"]) < 1e-12
    assert abs(found["momentum_y"]) < 1e-12


def test_what_cannot_be_is_refused():
    with pytest.raises(ArgumentError, match=r"`begin` 'dorp' is unknown; .* `drop`\?"):
        ShanChen("dorp")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentError, match=r"a drop needs an `attraction` above 4, got 3"):
        ShanChen("drop", attraction=3.0)
    with pytest.raises(ArgumentError, match=r"one density only up to an `attraction` of 4"):
        ShanChen(attraction=3.0).coexistence()
