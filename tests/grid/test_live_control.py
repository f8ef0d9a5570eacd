"""A live run steers a simulation: steps, new starts, undo, files of earlier starts."""

from pathlib import Path

import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation, lbm, pde
from hotgrid.grid.forms import ParameterSchedule
from hotgrid.grid.run import LiveControl


def heat(**parameters: float) -> LiveControl:
    return LiveControl(Simulation(pde.Heat(**parameters), size=(12, 16), compiled=False))


def test_it_makes_the_steps_that_a_run_makes():
    control, other = heat(), heat().simulation
    assert not control.advance(7)
    other.run(7, progress=False)
    assert control.simulation.step_count == 7
    assert torch.equal(control.simulation.state["u"], other.state["u"])


def test_planned_changes_take_place_at_their_steps():
    plan = ParameterSchedule().with_value("rate", 0.2, 5, 0.1)
    control, name = heat(), "rate"
    control.restart(control.start, plan)
    # A change that is only planned leaves the last good state as it is.
    assert not control.advance(4)
    before = control.simulation.model.parameters[name]
    assert control.advance(3)
    assert control.simulation.model.parameters[name] != before


def test_it_returns_to_a_moment():
    control = LiveControl(Simulation(lbm.Karman(), size=(48, 128), compiled=False))
    control.advance(3)
    moment, edits = control.moment(), control.edits
    before = control.simulation.state["f"].clone()
    mask = torch.zeros(48, 128, dtype=torch.bool)
    mask[20:28, 80:88] = True
    control.simulation.paint("solid", mask, 1.0)
    assert control.painted_solid
    control.advance(2)
    control.return_to(moment)
    assert not control.painted_solid
    assert torch.equal(control.simulation.state["f"], before)
    assert control.edits > edits


def test_a_file_brings_the_parameters_that_it_started_with(tmp_path: Path):
    control, first = heat(rate=0.1), heat(rate=0.1).start
    control.advance(3)
    path = control.simulation.save(tmp_path / "state")
    control.restart(first.changed(rate=0.2), ParameterSchedule())
    control.load(path)
    assert control.simulation.step_count == 3
    assert control.start.parameters == control.simulation.model.parameters == first.parameters
    other = LiveControl(Simulation(pde.Heat(rate=0.2), size=(12, 17), compiled=False))
    before = other.start
    with pytest.raises(ArgumentError, match="its size: 12x16, here 12x17"):
        other.load(path)
    assert other.start is before and other.simulation.step_count == 0
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(b"x" * 99)
    with pytest.raises(ArgumentError, match="is damaged"):
        other.load(damaged)


def test_inputs_of_a_start_are_those_of_its_parameters(tmp_path: Path):
    start = lbm.Karman()
    make = lambda model: LiveControl(Simulation(model, size=(48, 144), compiled=False))
    control, thinner = make(start), start.changed(diameter=0.1)
    control.restart(thinner, ParameterSchedule())
    path = control.simulation.save(tmp_path / "thin")
    again = make(thinner)
    again.simulation.load(path)
    other = make(start)
    other.load(path)
    other.advance(2)
    again.advance(2)
    assert torch.equal(other.simulation.state["f"], again.simulation.state["f"])
