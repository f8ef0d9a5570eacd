"""What travels between ranks: only what the next step reads."""

import pytest
import torch

from hotgrid.cluster import Communicator, run_ranks
from hotgrid.grid import Field, Model, Simulation, lbm
from hotgrid.grid.forms.cut._crossing import crossing


def needs(model: Model, size: tuple[int, ...]):
    return crossing(Simulation(model, size=size, compiled=False)._setting)


def test_populations_cross_a_side_in_one_direction():
    (found,) = needs(lbm.TaylorGreen(), (8, 8))
    for (axis, side), components in found.items():
        crossers = [i for i, c in enumerate(lbm.D2Q9.velocities) if c[axis] == -side]
        assert components == crossers
        assert len(components) == 3


def test_a_third_of_the_bytes_travels():
    def sent(depth: int) -> list[int]:
        def part(ranks: Communicator) -> int:
            sim = Simulation(
                lbm.TaylorGreen(), size=(16, 16), compiled=False, mesh="2", depth=depth,
                communicator=ranks,
            )  # fmt: skip
            sim.run(4, progress=False)
            return sim._form.halo.traffic.bytes

        return run_ranks(2, part)

    # Four exchanges of three populations, and one of nine that is four rows deep.
    assert sent(1) == [4 * 2 * 3 * 16 * 4] * 2
    assert sent(4) == [1 * 2 * 9 * 4 * 16 * 4] * 2


def test_a_field_that_is_seen_from_one_side_only():
    class Wind(Model):
        """Moves down, and to the right by itself."""

        fields = (Field("u", components=2),)

        def step(self, state, inputs, params):
            u = state["u"]
            return {"u": [u.part(0)[-1, 0], u.part(1)[0, -1] + u.part(0)[0, 0]]}

    assert needs(Wind(), (4, 4)) == [{(0, -1): [0], (0, 1): [], (1, -1): [1], (1, 1): []}]


def test_a_step_that_needs_numbers_sends_everything():
    class Curious(Model):
        fields = (Field("u"),)

        def step(self, state, inputs, params):
            if state["u"][0, 0].sum().item() > 0:
                return {"u": state["u"][0, 1]}
            return {"u": state["u"][1, 0]}

    assert needs(Curious(), (4, 4)) == [None]


def channel() -> lbm.Flow:
    return lbm.Flow(
        boundaries=(
            lbm.ZouHeVelocity("x-", velocity=(0.0, 0.05)),
            lbm.ExtrapolationOutlet("x+"),
            lbm.FreeSlip("y-"),
            lbm.Wall("y+"),
        ),
        viscosity=0.1,
    )


@pytest.mark.parametrize("overlap", [False, True])
def test_boundaries_that_look_further_have_what_they_need(overlap: bool):
    """An outlet in a block of its own, one column wide, reads across the cut."""
    whole = Simulation(channel(), size=(8, 4), compiled=False)
    whole.run(30, progress=False)

    def part(ranks: Communicator) -> torch.Tensor:
        sim = Simulation(
            channel(), size=(8, 4), compiled=False, mesh="1x4", depth=1, overlap=overlap,
            communicator=ranks,
        )  # fmt: skip
        sim.run(30, progress=False)
        return sim.state["f"]

    assert all(torch.equal(f, whole.state["f"]) for f in run_ranks(4, part))
