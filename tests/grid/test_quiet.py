"""Quiet steps: where no boundary has an effect, a flow without any does the same."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from hotgrid.grid import Model, Simulation, lbm, pde
from hotgrid.grid.forms._roll import RollForm
from hotgrid.grid.forms.padded._padded import PaddedForm
from hotgrid.grid.forms.padded._quiet import loud_pieces, quiet_setting

# Rows that are not a multiple of a piece, so that pieces begin anywhere in a row.
SIZE = (61, 333)


def boulders() -> lbm.Flow:
    """Solids of every kind between an inlet, an outlet and two kinds of walls."""
    return lbm.Flow(
        boundaries=[
            lbm.ExtrapolationOutlet("x+"),
            lbm.Wall("y-", velocity=(0, 0.02)),
            lbm.FreeSlip("y+"),
            lbm.HalfWay(lbm.ball((12, 30), 5), velocity=(0.01, 0)),
            lbm.FullWay(lbm.ball((24, 60), 4)),
            lbm.Curved(lambda size, y, x: torch.hypot(y - 14, x - 95) - 6),
            lbm.ZouHeVelocity("x-", velocity=(0, 0.03)),
        ],
        viscosity_map=1 + torch.arange(SIZE[0] * SIZE[1]).reshape(SIZE) / 1e4,
        viscosity=0.05,
    )


def pressed() -> lbm.Flow:
    return lbm.Flow(
        boundaries=[lbm.ZouHePressure("x-", density=1.01), lbm.ZouHePressure("x+")],
        collision="smagorinsky",
        force=(1e-5, 0),
    )


MODELS = {"boulders": boulders, "pressed": pressed, "karman": lbm.Karman}


def simulation(model: Model, **options) -> Simulation:
    sim = Simulation(model, size=SIZE, device="cpu", **options)
    noise = torch.Generator().manual_seed(1)
    sim.state = {"f": sim.state["f"] + 0.002 * torch.rand((9, *SIZE), generator=noise)}
    return sim


def loud(sim: Simulation) -> Tensor:
    """The cells where an input has something to say."""
    known = [x for x in sim._setting.model.inputs if x.quiet_at_zero]
    return torch.stack([(sim._setting.inputs[x.name] != 0).any(0) for x in known]).any(0)


@pytest.mark.parametrize("name", MODELS)
def test_a_twin_has_the_same_bits_where_inputs_are_zero_and_only_there(name: str):
    sim = simulation(MODELS[name](), form="roll", compiled=False)
    setting = quiet_setting(sim._setting)
    assert setting is not None
    twin = RollForm(setting)
    twin.load({name: x.clone() for name, x in sim._form.read().items()})
    twin.run(1)
    sim.step()
    differs = (sim.state["f"] != twin.read()["f"]).any(0)
    assert not (differs & ~loud(sim)).any()
    assert differs.any()


def test_a_twin_keeps_inputs_that_are_no_boundary():
    twin = boulders().quiet()
    assert twin is not None
    assert [known.name for known in twin.inputs] == ["viscosity_map"]


class Hush(lbm.Boundary):
    """A user's boundary that does not declare `quiet_elsewhere`."""

    def cells(self, size: tuple[int, ...]) -> Tensor:
        return torch.zeros(size, dtype=torch.bool)

    def select(self, site, pulled):
        return [0.9 * plane for plane in pulled]


class OwnStep(lbm.Flow):
    def step(self, state, inputs, params):
        return super().step(state, inputs, params)


@pytest.mark.parametrize(
    "model",
    [
        pde.Heat(),
        lbm.Flow(),
        lbm.Flow(boundaries=[lbm.Wall("y-"), Hush()]),
        OwnStep(boundaries=[lbm.Wall("y-"), lbm.Wall("y+")]),
    ],
    ids=["no inputs", "no boundaries", "unknown boundary", "own step"],
)
def test_there_is_no_twin_unless_the_model_declares_it(model: Model):
    assert model.quiet() is None


@given(
    st.lists(st.sampled_from([0, 0, 0, 0, 1, 7]), min_size=4, max_size=40),
    st.integers(1, 5),
    st.integers(0, 3),
)
@settings(deadline=None, max_examples=60)
def test_a_piece_is_loud_where_any_of_its_cells_is(numbers, piece, first):
    cells = len(numbers) - first
    room = [*numbers, *[0] * piece]
    given = [torch.tensor([[room]], dtype=torch.uint8), torch.zeros(2, 1, len(room))]
    expected = [
        any(room[begin : begin + piece]) for begin in range(first, first + cells, piece)
    ]
    found = loud_pieces(given, first=first, cells=cells, piece=piece)
    assert found.tolist() == expected


@pytest.mark.long
@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_a_run_goes_on_with_its_twin_bit_by_bit(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))  # where no twin is known
    solid, walls = lbm.HalfWay(lbm.ball((30, 80), 9)), [lbm.Wall("y-"), lbm.Wall("y+")]
    model = lbm.Flow(collision="bgk", boundaries=[solid, *walls], viscosity=0.03)
    sims = [simulation(model, compiled=compiled) for compiled in (True, False)]
    form = sims[0]._form
    assert isinstance(form, PaddedForm)
    for sim in sims:
        sim.run(3, progress=False)
    before = form._sweep
    assert 0 < form._patience < math.inf
    form._patience = 0.0  # as after as many seconds as compiling took
    for sim in sims:
        sim.run(30, progress=False)
    assert form._sweep is not before
    assert torch.equal(sims[0].state["f"], sims[1].state["f"])
    later = simulation(model)
    later.run(1, progress=False)
    assert later._form._patience == math.inf  # the twin was there from the first step


def test_a_form_without_the_core_never_waits_for_a_twin():
    sim = simulation(boulders(), compiled=False)
    form = PaddedForm(replace(sim._setting, compiled=False))
    form.load({name: x.clone() for name, x in sim._form.read().items()})
    form.run(4)
    sim.run(4, progress=False)
    assert form._patience > 0
    assert torch.equal(form.read()["f"], sim.state["f"])
