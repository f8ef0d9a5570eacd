"""Time: `run(time=...)` counts in the time of the equations, not in steps."""

import inspect

import pytest

from hotgrid.grid import Model, Simulation, pde

MODELS = [
    found
    for _, found in inspect.getmembers(pde, inspect.isclass)
    if issubclass(found, Model) and "dt" in found().parameters
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_step_takes_the_time_that_dt_says(model: type[Model]):
    assert model(dt=0.125).time_step == 0.125


def test_there_are_models_with_dt():
    assert {pde.Burgers, pde.Gas, pde.NavierStokes, pde.Schroedinger} <= set(MODELS)


def test_a_run_for_a_time_takes_as_many_steps_as_it_needs():
    sim = Simulation(pde.Burgers(dt=0.25), size=(32,), compiled=False, device="cpu")
    assert sim.run(time=3).steps == 12
    assert sim.time == 3


def test_light_crosses_a_cell_in_the_time_one():
    assert pde.Maxwell(courant=0.25).time_step == 0.25
