"""Parameters of a model: numbers that are fixed once, so that saved runs match."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.grid import Field, Model, Parameter, Simulation, lbm, pde


def test_a_parameter_is_a_number_of_the_model_and_a_description_on_the_class():
    model = lbm.Karman(reynolds=120)
    assert isinstance(model.reynolds, float)
    assert (model.reynolds, lbm.Karman().reynolds) == (120, 150)
    assert isinstance(lbm.Karman.reynolds, Parameter)
    assert lbm.Karman.reynolds.name == "reynolds"
    assert copy.copy(model).parameters == model.parameters


def test_a_model_that_was_made_keeps_its_parameters(tmp_path: Path):
    model = pde.Heat(rate=0.2)
    sim = Simulation(model, size=(8, 8), compiled=False, device="cpu")
    said = (
        r"`rate` of Heat is 0.2 and cannot change.* 0.1. Make another model, `Heat\(rate=0.1\)`"
    )
    with pytest.raises(ArgumentError, match=said):
        model.rate = 0.1
    assert model.rate == 0.2
    other = Simulation(pde.Heat(rate=0.2), size=(8, 8), compiled=False, device="cpu", seed=1)
    other.load(sim.save(tmp_path / "run"))
    assert torch.equal(other.state["u"], sim.state["u"])


def test_one_description_can_serve_two_names():
    class Twins(Model):
        fields = (Field("u"),)
        first = second = Parameter(1.0, low=0)

        def step(self, state: Any, inputs: Any, params: Any) -> Any:
            return {"u": state["u"].here}

    assert Twins(first=2, second=3).parameters == {"first": 2, "second": 3}
    with pytest.raises(ArgumentError, match="`second` must be at least 0, got -1"):
        Twins(second=-1)


@pytest.mark.compiles
def test_a_compiled_step_may_read_a_parameter_as_a_constant():
    class Constant(Model):
        fields = (Field("u"),)
        rate = Parameter(0.5)

        def step(self, state: Any, inputs: Any, params: Any) -> Any:
            return {"u": state["u"].here * self.rate}

    start = {"u": torch.ones(8, 8)}
    sim = Simulation(Constant(rate=0.25), size=(8, 8), state=start, device="cpu")
    sim.run(2)
    assert sim.compiled
    assert torch.equal(sim.state["u"], torch.full((8, 8), 0.0625))
