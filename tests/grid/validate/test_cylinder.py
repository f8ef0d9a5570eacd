"""Observing a cylinder: as often as requested, in whole launches."""

import pytest

from hotgrid.grid import Simulation
from hotgrid.grid.lbm import SchaeferTurek
from hotgrid.grid.validate._checks._cylinder import watched

SIZE = (41, 60)


def simulation(model: SchaeferTurek) -> Simulation:
    return Simulation(model, size=SIZE, compiled=False, device="cpu")


def test_every_look_sees_the_cylinder_as_it_is_then():
    model = SchaeferTurek()
    sim = simulation(model)
    seen = watched(sim, model, 12, looks=3)
    assert seen.every == 4
    assert sim.step_count == 12
    assert len(seen.drag) == len(seen.lift) == len(seen.pressure) == 3
    now = sim.observe()
    assert seen.drag[-1] == now["drag_coefficient"] != seen.drag[0]
    assert seen.lift[-1] == now["lift_coefficient"]
    assert seen.pressure[-1] == now["pressure_difference"]


def test_many_steps_between_looks_are_whole_launches():
    model = SchaeferTurek()
    sim = simulation(model)
    seen = watched(sim, model, 200, looks=2)
    assert seen.every == 64
    assert sim.step_count == 192


def test_coefficients_are_over_the_density_at_the_inlet():
    model = SchaeferTurek()
    state = simulation(model).state
    plain = model.drag_coefficient(state).item()
    state["f"][0, :, 0] += 0.25
    assert model.drag_coefficient(state).item() == pytest.approx(plain / 1.25, rel=1e-3)
