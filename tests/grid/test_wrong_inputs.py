"""Wrong input of every kind: one clear `ArgumentError` that repeats it and says the way out."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.grid import (
    Field,
    Input,
    Model,
    Parameter,
    Recorder,
    Simulation,
    VectorModel,
    build_model,
    draw,
    export,
    find_model,
    observable,
    pde,
    rollout,
)
from hotgrid.grid.model import view

SIZE = (8, 8)


class Still(Model):
    """A model that does nothing."""

    fields = (Field("u"),)

    def step(self, state: Any, inputs: Any, params: Any) -> Any:
        return {"u": state["u"].here}


def still(**declared: Any) -> Model:
    return type("Mine", (Still,), declared)()


def stepping(step: Callable[[Any], Any], components: int = 1) -> Model:
    return still(
        fields=(Field("u", components=components),),
        step=lambda self, state, inputs, params: step(state),
    )


def simulation(model: Any = None, **options: Any) -> Simulation:
    options = {"size": SIZE, "compiled": False, "device": "cpu", **options}
    return Simulation(pde.Heat() if model is None else model, **options)


def refused(work: Callable[[], Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        work()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"model": pde.Heat}, r"`model` is the class Heat; make one: `Heat\(\)`"),
        ({"model": "heat"}, r"`model` must be a hotgrid.grid.Model, .* got 'heat'"),
        ({"size": "8x8"}, r"`size` is one positive .* got '8x8'; write it as \(256, 256\)"),
        ({"size": (-3, 8)}, r"got \(-3, 8\)"),
        ({"size": np.array([8, 8])}, r"got array\(\[8, 8\]\)"),
        ({"model": still(), "size": 64}, r"2 dims, .* has 1; a square is \(64, 64\)"),
        ({"batch": 2.5}, "`batch` must be a whole number, got 2.5"),
        ({"batch": True}, "`batch` must be a whole number, got True"),
        ({"seed": -1}, "`seed` must be at least 0, got -1"),
        ({"seed": 1.5}, "`seed` must be a whole number, got 1.5"),
        ({"seed": None}, "`seed` must be a whole number, got None"),
        ({"seed": 2**64}, "`seed` must be at most 18446744073709551615"),
        ({"device": 3.5}, "the device '3.5' cannot be used here"),
        ({"device": "meta"}, "the device 'meta' holds no numbers; use 'cpu' or 'cuda'"),
        ({"compiled": "yes"}, "`compiled` must be True or False, got 'yes'"),
        ({"form": 3}, "`form` 3 is unknown; use"),
        ({"depth": 2}, "`depth` 2 needs a `mesh`"),
        ({"mesh": "1", "depth": 2.5}, "`depth` must be a whole number, got 2.5"),
        ({"mesh": "1", "communicator": "x"}, "`communicator` must be a Communicator, got 'x'"),
        ({"state": torch.zeros(SIZE)}, r"got Tensor \(\d+, \d+\) of torch.float32$"),
        ({"state": {torch.zeros(SIZE): 1}}, r"has no state `Tensor \(.* of torch.float32`"),
        ({"state": [("u", 1)]}, "`state` must be a dict .*, got list"),
        ({"state": {"u": "abc"}}, "`u` in `state` is not a tensor"),
        ({"state": {"u": None}}, "`u` in `state` is not a tensor"),
        ({"state": {"u": [[1, 2], [3]]}}, "`u` in `state` is not a tensor: expected sequence"),
        ({"state": {0: torch.zeros(SIZE)}}, r"Heat has no state `0` \(it has u\)"),
        ({"state": {"u": torch.zeros(SIZE) * 1j}}, "`u` in `state` is complex"),
        ({"inputs": torch.zeros(SIZE)}, "`inputs` must be a dict .*, got Tensor"),
    ],
)
def test_a_simulation(options: dict[str, Any], said: str):
    refused(lambda: simulation(**options), said)


def test_fractions_are_not_cut_off_for_what_is_kept_as_whole_numbers():
    model = still(fields=(Field("u"), Field("n", dtype=torch.int16)), step=lambda *a: None)
    said = r"`n` in `state` has the type torch.float32, but whole .*; give `.to\(torch.int16\)`"
    refused(lambda: simulation(model, state={"n": torch.full(SIZE, 0.5)}), said)
    counts = torch.arange(64).reshape(SIZE)
    assert torch.equal(simulation(model, state={"n": counts}).state["n"], counts.short())
    said = "`n` in `state` has the type"
    refused(lambda: setattr(simulation(model), "state", {"n": torch.zeros(SIZE)}), said)


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"fields": ()}, r"`Mine.fields` must be one `Field` or more, .* got \(\)"),
        ({"fields": Field("u")}, "`Mine.fields` must be a tuple of `Field`"),
        ({"fields": ("u",)}, r"`Mine.fields` must be a tuple of `Field`, .* got \('u',\)"),
        ({"inputs": (Field("w"),)}, "`Mine.inputs` must be a tuple of `Input`"),
        ({"fields": (Field("u"), Field("u"))}, "Mine declares `u` twice"),
        ({"inputs": (Input("u"),)}, "Mine declares `u` twice"),
        ({"radius": "1"}, "`Mine.radius` must be a whole number of cells, got '1'"),
        ({"ranks": 2}, "`Mine.ranks` must be a tuple of numbers of dims, .* got 2"),
        ({"time_step": 0}, "`Mine.time_step` must be a number above 0, got 0"),
        ({"time_step": "a"}, "`Mine.time_step` must be a number above 0, got 'a'"),
        ({"initial": lambda *a: None}, "`Mine.initial` must be a dict .*, got NoneType"),
        ({"initial": lambda *a: {}}, "`Mine.initial` does not return the field `u`"),
        ({"initial": lambda *a: {"u": torch.zeros(3)}}, "`u` in `Mine.initial` does not match"),
        ({"inputs": (Input("w"),), "static": lambda *a: 3}, "`Mine.static` must be a dict"),
        (
            {"initial": lambda self, size: {}},
            r"`Mine.initial` is called with \(size, generator\) after .* takes \(size\)",
        ),
        (
            {"step": lambda self, state: {}},
            r"`Mine.step` is called with \(state, inputs",
        ),
        ({"phase": lambda self, state: {}}, r"`Mine.phase` is called with \(whole, state, inp"),
        (
            {"mass": observable(lambda self, s: s["u"].sum()), "conserved": ("mas",)},
            "`Mine.conserved` names `mas`, which is not one of its .* did you mean `mass`",
        ),
        ({"conserved": ("mass",)}, r"`Mine.conserved` names `mass`, .* \(they are none\)"),
        ({"rate": Parameter(1.0), "__init__": lambda self: None}, "has no `rate` yet"),
    ],
)
def test_what_a_model_declares(declared: dict[str, Any], said: str):
    refused(lambda: simulation(still(**declared)), said)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Field(None), "`name` of a field or input must be a text, got None"),
        (lambda: Input(""), "`name` of a field or input must be a text, got ''"),
        (lambda: Field("u", components=0), "`components` of `u` must be .* at least 1, got 0"),
        (lambda: Input("u", components="3"), "`components` of `u` must be .*, got '3'"),
        (lambda: Field("u", dtype=np.float32), "`dtype` of `u` must be a type of torch"),
        (lambda: Field("u", boundary="0"), "`boundary` of the field `u` must be periodic"),
        (lambda: Field("u", boundary="miror"), "did you mean `mirror`"),
        (lambda: Field("u", boundary=("mirror", (0, 1, 2))), r"has \(0, 1, 2\) for one axis"),
        (lambda: Field("u", boundary=[("periodic", 0)]), "both ends are periodic or none"),
        (
            lambda: Field("u", boundary=("mirror",)).faces(2),
            "is for 1 axes, but the grid has 2",
        ),
    ],
)
def test_a_field_or_an_input(make: Callable[[], Any], said: str):
    refused(make, said)


@pytest.mark.parametrize("form", ["roll", "padded"])
@pytest.mark.parametrize(
    ("model", "said"),
    [
        (stepping(lambda s: s["u"].here), "`Mine.step` must return a dict .*, got Tensor"),
        (stepping(lambda s: None), "`Mine.step` must return a dict .*, got NoneType"),
        (stepping(lambda s: [s["u"].here]), "`Mine.step` must return a dict .*, got list"),
        (stepping(lambda s: {"u": torch.zeros(3, 3)}), r"the shape \(3, 3\) for the field `u`"),
        (stepping(lambda s: {"u": [1.0]}), "tensors of real numbers .*, got float"),
        (stepping(lambda s: {"u": s["u"].here * 1j}), "real numbers .*, got torch.complex64"),
        (stepping(lambda s: {"u": s["u"].part(3).here}), "no component 3: the field has 1"),
        (stepping(lambda s: {"u": s["u"][0.5, 0]}), r"\(0.5, 0\) must be whole numbers"),
        (stepping(lambda s: {"u": s["u"][:, 0]}), r"must be whole numbers, .* as \(0, 1\)"),
        (stepping(lambda s: {"u": torch.zeros(())}, 2), "must return 2 component"),
    ],
)
def test_a_step(model: Model, said: str, form: str):
    sim = simulation(model, form=form)
    refused(lambda: sim.run(1), said)


@pytest.mark.parametrize("form", ["roll", "padded"])
def test_a_constant_stands_for_every_cell(form: str):
    model = stepping(lambda s: {"u": [torch.tensor(2.0), s["u"].part(1).here]}, 2)
    sim = simulation(model, form=form, batch=3)
    sim.run(2)
    assert torch.equal(sim.state["u"][:, 0], torch.full((3, *SIZE), 2.0))


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda sim: sim.run("10"), "`steps` must be a whole number, got '10'"),
        (lambda sim: sim.run(True), "`steps` must be a whole number, got True"),
        (lambda sim: sim.run(time="1"), "`time` must be a finite number, got '1'"),
        (lambda sim: sim.run(5, until=3), "`until` must be a function of .*, got 3"),
        (lambda sim: sim.run(5, check_every=2.5), "`check_every` must be a whole number"),
        (lambda sim: sim.every(1.5, print), "`steps` must be a whole number, got 1.5"),
        (lambda sim: sim.every(1, 3), "`callback` must be a function .*, got 3"),
        (lambda sim: sim.view(3), "Heat has no view `3`"),
        (lambda sim: sim.save(3), "`path` must be a path, got 3"),
        (lambda sim: sim.save(""), "`path` must be a path, got ''"),
        (lambda sim: sim.load(None), "`path` must be a path, got None"),
        (lambda sim: setattr(sim, "state", None), "`state` must be a dict"),
        (lambda sim: export(sim, "out", "npz"), r"`formats` is a list, .* got 'npz'"),
        (lambda sim: export(sim, "out", None), r"`formats` is a list, .* got None"),
        (lambda sim: export(sim, 3, ["npz"]), "`folder` must be a path, got 3"),
        (lambda sim: Recorder(sim, "a.gif", every=1.5), "`every` must be a whole number"),
        (lambda sim: Recorder(sim, 3, every=1), "`path` must be a path, got 3"),
        (lambda sim: draw(sim, view=3), "Heat has no view `3`"),
    ],
)
def test_using_a_simulation(use: Callable[[Simulation], Any], said: str):
    sim = simulation()
    refused(lambda: use(sim), said)
    assert sim.step_count == 0


def test_an_observable_of_parts_is_a_sum_a_mean_or_a_maximum():
    said = "`over` of an observable must be one of sum, mean, max, or left out .* got 'min'"
    refused(lambda: observable(over="min"), said)  # pyright: ignore[reportCallIssue, reportArgumentType]


def test_a_step_of_vectors_has_a_name_of_its_own():
    said = "Mixing is a VectorModel and writes `step`, .* call it `vector_step`"
    refused(lambda: type("Mixing", (VectorModel,), {"step": lambda *a: None}), said)


def test_whole_numbers_of_numpy_are_taken():
    sim = simulation(seed=np.int64(3), batch=np.int32(2))
    sim.every(np.int64(2), lambda sim: None)
    assert sim.run(np.int64(3), check_every=np.int64(2)).steps == 3


@pytest.mark.parametrize(
    ("marked", "look", "said"),
    [
        (observable(lambda self, s: s["u"]), "observe", r"one number, got the shape \(8, 8\)"),
        (observable(lambda self, s: None), "observe", "must be one number, got None"),
        (view(lambda self, s: None), "view", "view `bad` of Mine must be a tensor, got None"),
    ],
)
def test_what_is_looked_at(marked: Any, look: str, said: str):
    sim = simulation(still(bad=marked, picture="bad"))
    refused(getattr(sim, look), said)


def test_an_observable_may_be_a_plain_number():
    sim = simulation(still(three=observable(lambda self, s: 3.0)), batch=2)
    assert sim.observe() == {"three": [3.0, 3.0]}


HEAT = {"u": torch.zeros(SIZE)}


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (lambda: rollout(pde.Heat, HEAT, 2), "`model` is the class Heat"),
        (lambda: rollout(pde.Heat(), HEAT, 2.5), "`steps` must be a whole number, got 2.5"),
        (lambda: rollout(pde.Heat(), HEAT, 2, remat=1.5), "`remat` must be a whole number"),
        (lambda: rollout(pde.Heat(), HEAT["u"], 2), "`state` must be a dict .*, got Tensor"),
        (lambda: rollout(pde.Heat(), HEAT, 2, params=[1]), r"`params` must be a dict .* \[1\]"),
        (lambda: rollout(pde.Heat(), HEAT, 2, inputs=[1]), "`inputs` must be a dict .* list"),
        (lambda: build_model(pde.Heat, ["rate"]), "`values` must be a dict"),
        (lambda: find_model(None), "a model is named by a text, such as `heat`, got None"),
    ],
)
def test_functions_of_the_package(work: Callable[[], Any], said: str):
    refused(work, said)
