"""Which form runs what, and what the forms promise beside equal bits."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from hotgrid import _native
from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation, lbm, pde
from hotgrid.grid.forms._form import compile_step
from hotgrid.grid.forms._strips import StripForm
from hotgrid.grid.forms.kernel._tape import taped
from hotgrid.grid.forms.padded._padded import PaddedForm, _fill
from hotgrid.grid.model import Field, Model


class Turning(Model):
    """Three components that change places."""

    fields = (Field("u", components=3),)

    def step(self, state, inputs, params):
        u = state["u"]
        return {"u": [u.part((k + 1) % 3)[k - 1, 1] * 0.5 + u.part(k).here for k in range(3)]}

    def initial(self, size, generator):
        return {"u": torch.rand(3, *size, generator=generator)}


def test_on_a_cpu_compiled_steps_are_padded_and_others_whole():
    compiled, plain = (
        Simulation(pde.Heat(), size=(16, 16), device="cpu", compiled=c) for c in (True, False)
    )
    assert (compiled.form, plain.form) == ("padded", "roll")


def test_strips_need_rows_that_can_be_dealt_out():
    with pytest.raises(
        ArgumentError, match="`strips` cannot run here: it needs an even number"
    ):
        Simulation(pde.Heat(), size=(15, 16), device="cpu", form="strips")


@pytest.mark.parametrize("rows", [1, 2, 3, 6])
def test_strips_of_any_height_give_the_same_bits(rows: int):
    sims = [Simulation(pde.Heat(), size=(12, 8), compiled=False, form="roll") for _ in range(2)]
    sims[1]._form = StripForm(sims[1]._setting, rows)
    sims[1].reset()
    for sim in sims:
        sim.run(9, progress=False)
    assert torch.equal(sims[0].state["u"], sims[1].state["u"])


@pytest.mark.compiles
def test_few_components_are_written_into_their_field_with_the_same_bits():
    sims = [
        Simulation(Turning(), size=(6, 5), batch=2, device="cpu", compiled=c, form="roll")
        for c in (False, True)
    ]
    before = sims[1]._form.read()["u"]
    kept = before.clone()
    for sim in sims:
        sim.run(3, progress=False)
    assert torch.equal(sims[0].state["u"], sims[1].state["u"])
    # A step makes new tensors: who holds the old ones sees no change.
    assert torch.equal(before, kept)


def test_torch_knows_the_options_of_a_step_on_a_gpu(monkeypatch: pytest.MonkeyPatch):
    sim = Simulation(pde.Heat(), size=(2048, 1024), device="cpu", compiled=False)
    setting = replace(sim._setting, device=torch.device("cuda"), compiled=True)
    given, compiled = [], torch.compile

    def compiling(function, **options):
        given.append(options["options"])
        # It refuses options that it does not know.
        return compiled(function, **options)

    monkeypatch.setattr(torch, "compile", compiling)
    compile_step(lambda: None, setting)
    assert given[0]["coordinate_descent_tuning"] is True
    assert given[0]["triton.max_tiles"] == 1


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bool, torch.int32])
@pytest.mark.parametrize(
    ("shape", "margin"), [((5,), (1,)), ((6, 9), (2, 3)), ((3, 4, 7), (1, 0, 2))]
)
def test_the_core_joins_ends_as_tensors_do(dtype, shape, margin):
    size = [n + 2 * m for n, m in zip(shape, margin, strict=True)]
    buffer = (torch.rand(2, *size) * 100).to(dtype)
    twin = buffer.clone()
    _fill(twin, margin, (("periodic", "periodic"),) * len(margin))
    _native.core().join_ends(buffer.flatten(1), size, list(margin))
    assert torch.equal(buffer, twin)


def test_the_core_refuses_a_margin_wider_than_its_grid():
    with pytest.raises(ValueError, match="wider than the grid"):
        _native.core().join_ends(torch.zeros(1, 20), [4, 5], [1, 2])
    with pytest.raises(ValueError, match="same number of dims"):
        _native.core().join_ends(torch.zeros(4), [4], [1, 1])
    with pytest.raises(ValueError, match="more cells than a plane"):
        _native.core().join_ends(torch.zeros(2, 19), [4, 5], [1, 1])


def test_a_tape_that_shows_nothing_is_not_played():
    given, out = torch.arange(4.0), torch.zeros(4)
    assert taped(lambda: out.copy_(given + 1), [out]) == []


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_kernels_of_a_small_grid_are_launched_without_torch():
    model = lbm.Flow(collision="bgk", viscosity=0.05)
    sims = [Simulation(model, size=(24, 20), device="cpu", compiled=c) for c in (True, False)]
    state = {"f": sims[0].state["f"] + 0.001 * torch.rand(9, 24, 20)}
    for sim in sims:
        sim.state = state
        sim.run(3, progress=False)
        sim.run(50, progress=False)
    form = sims[0]._form
    assert isinstance(form, PaddedForm)
    assert form._sweep is not None
    assert torch.equal(sims[0].state["f"], sims[1].state["f"])


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
@pytest.mark.parametrize(("depth", "at_once"), [(1, 1), (1, 1 << 21), (3, 1), (3, 500)])
def test_steps_in_rounds_are_as_many_single_steps(depth, at_once, monkeypatch):
    monkeypatch.setattr("hotgrid.grid.forms.padded._padded._AT_ONCE", at_once)
    sim = Simulation(pde.GrayScott(), size=(12, 14), device="cpu", compiled=True)
    forms = [PaddedForm(sim._form.setting, depth) for _ in range(2)]
    rounds: list[int] = []
    for form in forms:
        form.load(sim.state)
        form.run(2)
        form.touched()
    assert forms[0]._rounds
    sweep = forms[0]._sweep
    forms[0]._sweep = SimpleNamespace(
        run=sweep.run, rounds=lambda *given: (rounds.append(given[1]), sweep.rounds(*given))
    )
    forms[0].run(25)
    for _ in range(25):
        forms[1].run(1)
    cells = forms[0]._cells
    assert sum(rounds) == 25 // depth * depth
    assert max(rounds) == depth * max(1, min(25 // depth, at_once // (cells * depth)))
    for name, found in forms[0].read().items():
        assert torch.equal(found, forms[1].read()[name])
