"""Two components: their force by hand, what they conserve, and when they separate."""

import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.lbm import D2Q9, PhaseSeparation, RisingDrop, TwoComponents


def simulation(model: TwoComponents, size: tuple[int, ...]) -> Simulation:
    return Simulation(model, size=size, dtype=torch.float64, compiled=False, device="cpu")


def test_the_forces_are_those_of_the_formula_cell_by_cell():
    g = torch.Generator().manual_seed(0)
    both = [0.2 + torch.rand(5, 6, generator=g, dtype=torch.float64) for _ in range(2)]
    around = [
        lambda at, density=density: torch.roll(density, (-at[0], -at[1]), (0, 1))
        for density in both
    ]
    numbers = {"repulsion": 2.7, "gravity": 0.01, "whole": 0.3}
    found = RisingDrop().forces(around, numbers)
    for one, lift in ((0, 0.01 * 0.7), (1, -0.01 * 0.3)):
        own, other = both[one], both[1 - one]
        for y in range(5):
            for x in range(6):
                push = [0.0, 0.0]
                for (cy, cx), w in zip(D2Q9.velocities, D2Q9.weights, strict=True):
                    beside = other[(y + cy) % 5, (x + cx) % 6].item()
                    push[0] += w * beside * cy
                    push[1] += w * beside * cx
                here = own[y, x].item()
                wanted = [-2.7 * here * push[0] + lift * here, -2.7 * here * push[1]]
                seen = [plane[y, x].item() for plane in found[one]]
                assert seen == pytest.approx(wanted, abs=1e-15)


@pytest.mark.parametrize(("repulsion", "parts"), [(1.7, False), (2.8, True)])
def test_a_mixture_separates_above_the_critical_repulsion(repulsion: float, parts: bool):
    sim = simulation(PhaseSeparation(repulsion=repulsion, viscosity=0.05), (12, 16))
    before = sim.observe()
    sim.run(250)
    after = sim.observe()
    assert (after["contrast"] > 0.5) is parts
    assert parts or after["contrast"] < before["contrast"]
    for name in ("mass_first", "mass_second", "mass"):
        assert after[name] == pytest.approx(before[name], rel=1e-12), name
    for name in ("momentum_x", "momentum_y"):
        assert abs(after[name]) < 1e-11, name


def test_a_drop_rises_and_all_of_it_stays_where_it_is():
    sim = simulation(RisingDrop(gravity=2e-4), (40, 24))
    before = sim.observe()
    sim.run(150)
    after = sim.observe()
    assert after["height"] > before["height"] + 0.2
    assert abs(after["momentum_y"]) < 1e-10
    drop = sim.view("share") > 0.8
    assert sim.view("velocity_y")[drop].mean() > 0


def test_a_drop_at_rest_begins_with_one_pressure():
    sim = simulation(RisingDrop(gravity=0.0), (32, 32))
    pressure = sim.view("pressure")
    assert pressure.max() - pressure.min() < 1e-12
    assert sim.observe()["height"] == pytest.approx(16, abs=1e-9)


def test_components_alike_in_share_are_one_fluid():
    """Without repulsion a share that is the same everywhere stays, and shear decays."""
    sim = simulation(PhaseSeparation(repulsion=0.0, filling=0.3), (8, 8))
    sim.run(300)
    share = sim.view("share")
    assert share.max() - share.min() < 1e-6
    assert share.mean().item() == pytest.approx(0.3, abs=1e-3)


def test_a_stroke_changes_the_share_under_it_alone():
    sim = simulation(RisingDrop(), (24, 16))
    sim.run(5)
    state, mask = sim.state, torch.zeros(24, 16, dtype=torch.bool)
    mask[3:5, 2:9] = True
    model = sim.model
    assert [brush.name for brush in model.brushes()] == ["solid", "share"]
    painted = {**state, **model.painted(state, "share", mask, 0.25)}
    for name in ("share", "density"):
        found, before = (model.views()[name](x) for x in (painted, state))
        wanted = before[mask] if name == "density" else torch.full_like(before[mask], 0.25)
        torch.testing.assert_close(found[mask], wanted)
        assert torch.equal(found[~mask], before[~mask])


def test_fluid_bounces_off_painted_walls_and_no_component_is_lost():
    cells = torch.zeros(16, 20, dtype=torch.bool)
    cells[6:9, 4:12] = True
    sim = simulation(PhaseSeparation().with_solid(cells), (16, 20))
    before = sim.observe()
    sim.run(60)
    after = sim.observe()
    assert after["mass_first"] == pytest.approx(before["mass_first"], rel=1e-12)
    assert after["mass_second"] == pytest.approx(before["mass_second"], rel=1e-12)
    assert torch.isfinite(torch.tensor([after["drag"], after["lift"]])).all()


def test_what_cannot_be_is_refused():
    with pytest.raises(ArgumentError, match=r"`repulsion` must be from 0 to 5, got 9"):
        PhaseSeparation(repulsion=9.0)
    with pytest.raises(ArgumentError, match=r"`radius_over_width` must be above 0"):
        RisingDrop(radius_over_width=0.0)
