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
    plan = ParameterSchedule().with_value("rate", 0.2, 5)
    control, name = heat(), "rate"
    control.restart(control.start, plan)
    assert control.advance(4)
    before = control.simulation.model.parameters[name]
    control.advance(3)
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


def test_a_file_is_loaded_from_the_start_that_fits(tmp_path: Path):
    control, first = heat(rate=0.1), heat(rate=0.1).start
    control.advance(3)
    path = control.simulation.save(tmp_path / "state")
    second = first.changed(rate=0.2)
    control.restart(second, ParameterSchedule())
    with pytest.raises(ArgumentError):
        control.load(path, [second])
    assert control.start is second
    control.load(path, [second, first])
    assert control.simulation.step_count == 3
    assert control.start is first
