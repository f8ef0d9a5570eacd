"""Cells that are solid in part: what they do to a fluid, and the force on them."""

import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation, rollout
from hotgrid.grid.lbm import D2Q9, Flow, FullWay, Porous, at_equilibrium, ball, moments


def stirred(size, generator):
    density, *velocity = torch.rand(3, *size, generator=generator, dtype=torch.float64) - 0.5
    return 1 + 0.02 * density, [0.1 * u for u in velocity]


def start(model: Flow, size: tuple[int, ...]) -> dict[str, torch.Tensor]:
    return model.initial(size, torch.Generator().manual_seed(2))


def test_a_share_of_one_is_a_solid_that_turns_everything_round():
    size, solid = (10, 12), ball((4, 5), 2.6)
    full, porous = (
        Flow(boundaries=[wall], start=stirred, viscosity=0.05)
        for wall in (FullWay(solid), Porous(lambda size: solid(size).double()))
    )
    state = start(full, size)
    later = [rollout(model, state, 20) for model in (full, porous)]
    torch.testing.assert_close(later[1]["f"], later[0]["f"], rtol=0, atol=1e-15)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.7])
def test_a_medium_has_the_permeability_of_its_share(share: float):
    """Momentum m loses 2 s m in a step and gains 1 - s of the force."""
    force, size = 1e-4, (4, 6)
    model = Flow(boundaries=[Porous(torch.full(size, share))], force=(0, force))
    later = rollout(model, start(model, size), round(8 / min(share, 1 - share)))
    _, (across, along) = moments(D2Q9, later["f"].unbind(0))
    expected = force * (1 - share) / (2 * share)
    torch.testing.assert_close(along, torch.full_like(along, expected), rtol=1e-6, atol=0)
    assert across.abs().max() < 1e-6 * expected


def test_the_force_is_the_momentum_that_the_fluid_loses():
    size = (9, 8)
    share = torch.zeros(size, dtype=torch.float64)
    share[2:5, 3:6] = torch.rand(3, 3, generator=torch.Generator().manual_seed(1)).double()
    model = Flow(boundaries=[Porous(share)], viscosity=0.1)
    one = torch.ones(size, dtype=torch.float64)
    state = {"f": at_equilibrium(model.lattice, one, [0.02 * one, 0.05 * one])}
    later = rollout(model, state, 1)
    for axis, force in enumerate(model.force_on_obstacles(state)):
        before, after = (moments(D2Q9, s["f"].unbind(0))[1][axis].sum() for s in (state, later))
        torch.testing.assert_close(before - after, force)


def test_forms_agree_on_cells_solid_in_part():
    share = torch.zeros(24, 40)
    share[8:14, 12:20] = 0.3
    model = Flow(boundaries=[Porous(share)], start=stirred)
    sims = [
        Simulation(model, size=(24, 40), form=form, compiled=False)
        for form in ("roll", "padded")
    ]
    for sim in sims:
        sim.run(20, progress=False)
    assert torch.equal(sims[0].state["f"], sims[1].state["f"])


def test_shares_have_the_shape_of_the_grid():
    with pytest.raises(ArgumentError, match=r"`share` has the shape \(3, 3\)"):
        Simulation(Flow(boundaries=[Porous(torch.zeros(3, 3))]), size=(8, 8), compiled=False)


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_a_share_that_is_not_from_0_to_1_is_refused(share: float):
    model = Flow(boundaries=[Porous(torch.full((8, 8), share))])
    with pytest.raises(ArgumentError, match=f"from 0 to 1, got {share:g} to {share:g}"):
        Simulation(model, size=(8, 8), compiled=False)
