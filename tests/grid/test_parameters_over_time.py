"""Parameters that change during a run: `set`, `schedule`, and what is saved of them."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st

from hotgrid.config import case_of
from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation, SimulationCheckpoints, VtkSeries, lbm, models, pde
from hotgrid.grid.forms import ParameterSchedule, split_start
from hotgrid.grid.model import Field, Model, Parameter
from hotgrid.grid.run import perform

from .vtk_files import listed

SIZE = (24, 40)


def simulation(model: Model, **more: Any) -> Simulation:
    return Simulation(model, size=SIZE, device="cpu", compiled=False, seed=3, **more)


def with_parameters() -> list[Any]:
    """Every model of two dims with a parameter, its first one, and in `make test` one form."""
    kinds = {name: k for name, k in models().items() if k._parameters and len(k().size) == 2}
    return [
        pytest.param(
            kind,
            next(iter(kind._parameters.values())),
            form,
            id=f"{name} {form}",
            marks=[pytest.mark.long] * ((at + n) % 2),
        )
        for at, (name, kind) in enumerate(kinds.items())
        for n, form in enumerate(("roll", None))
    ]


@pytest.mark.parametrize(("kind", "parameter", "form"), with_parameters())
def test_a_change_is_as_if_another_model_went_on(
    kind: type[Model], parameter: Parameter, form: str | None
):
    start, size = kind(), (48, 144)
    value = 0.9 * start.parameters[parameter.name] or 0.5 * min(parameter.high, 1)
    make = lambda model, **more: Simulation(
        model, size=size, device="cpu", compiled=False, seed=3, form=form, **more
    )
    sim = make(start)
    sim.run(4, progress=False)
    other = make(start.changed(**{parameter.name: value}), state=sim.state)
    sim.set(**{parameter.name: value})
    assert sim.model.parameters[parameter.name] == value
    sim.run(3, progress=False)
    other.run(3, progress=False)
    for name, x in sim.state.items():
        assert torch.equal(x, other.state[name]), name
    assert sim.step_count == 7


class Weighed(Model):
    """A parameter as a tensor, one as a constant, one in an attribute, one in an input."""

    fields = (Field("u"),)
    rate = Parameter(0.25, low=0, high=1)
    constant = Parameter(2.0)
    derived = Parameter(3.0)

    def __init__(self, **parameters: float) -> None:
        super().__init__(**parameters)
        self.twice = 2 * self.derived

    def step(self, state: Any, inputs: Any, params: Any) -> Any:
        u = state["u"]
        return {"u": params["rate"] * u[0, 1] + self.constant + self.twice + 0 * u[0, 0]}

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> dict[str, Any]:
        return {"u": torch.rand(size, generator=generator)}


@pytest.mark.parametrize("name", ["rate", "constant", "derived"])
@pytest.mark.parametrize("form", ["roll", "padded"])
def test_however_a_step_uses_a_parameter_the_new_value_holds(name: str, form: str):
    sim = simulation(Weighed(), form=form)
    sim.run(2)
    other = simulation(Weighed(**{name: 0.5}), form=form, state=sim.state)
    before = sim._form
    sim.set(**{name: 0.5})
    assert (sim._form is before) == (name == "rate")
    sim.run(2)
    other.run(2)
    assert torch.equal(sim.state["u"], other.state["u"])


@pytest.mark.compiles
def test_a_compiled_step_takes_a_new_value_without_compiling_again():
    start = {"u": torch.ones(32, 32)}
    sim = Simulation(pde.Heat(rate=0.1), size=(32, 32), device="cpu", state=start)
    sim.run(2)
    step = sim._form._step
    sim.set(rate=0.2)
    sim.run(1)
    assert sim.compiled and sim._form._step is step
    other = Simulation(pde.Heat(rate=0.2), size=(32, 32), device="cpu", state=start)
    other.run(1)
    torch.testing.assert_close(sim.state["u"], other.state["u"])


def test_a_fork_keeps_its_values():
    sim = simulation(pde.Heat(rate=0.1))
    sim.run(2)
    twin, alone = sim.fork(), simulation(pde.Heat(rate=0.1))
    sim.set(rate=0.2)
    sim.run(2)
    twin.run(2)
    alone.run(4)
    assert twin.model.parameters["rate"] == 0.1
    assert torch.equal(twin.state["u"], alone.state["u"])


@pytest.mark.parametrize("at_once", [True, False])
def test_a_schedule_is_followed_to_the_step(at_once: bool):
    sim = simulation(pde.Heat(rate=0.05))
    sim.schedule(rate="0.1 @ 3 -> 0.2 @ 5..9")
    slow = simulation(pde.Heat(rate=0.05))
    for step in range(12):
        wanted = 0.05 if step < 3 else 0.1 if step <= 5 else min(0.2, 0.1 + 0.025 * (step - 5))
        slow.set(rate=wanted)
        slow.step()
    if at_once:
        sim.run(12)
    else:
        for _ in range(12):
            sim.step()
    assert torch.equal(sim.state["u"], slow.state["u"])


def test_saved_states_carry_their_changes(tmp_path: Path):
    whole, sim = simulation(pde.Heat(rate=0.1)), simulation(pde.Heat(rate=0.1))
    for each in (whole, sim):
        each.schedule(rate=[(5, 0.2), (9, 0.05)])
    whole.run(12)
    sim.run(7)
    file = sim.save(tmp_path / "state")
    with SimulationCheckpoints(sim, tmp_path / "run") as checkpoints:
        checkpoints.save()
    loaded, resumed = simulation(pde.Heat(rate=0.1)), simulation(pde.Heat(rate=0.1))
    loaded.load(file)
    SimulationCheckpoints(resumed, tmp_path / "run").load()
    for each in (loaded, resumed):
        assert each.model.parameters == {"rate": 0.2} and each.changes == sim.changes
        each.run(5)
        assert torch.equal(each.state["u"], whole.state["u"])


def test_reset_starts_with_the_first_values_again():
    sim = simulation(pde.Heat(rate=0.1))
    sim.schedule(rate="0.2 @ 5")
    sim.run(8)
    first = sim.state["u"]
    sim.reset()
    sim.run(8)
    assert torch.equal(sim.state["u"], first)


def test_reset_makes_the_start_with_the_first_values():
    sim = simulation(lbm.TaylorGreen())
    first = sim.state["f"]
    sim.schedule(velocity="0.01 @ 1")
    sim.run(2)
    sim.reset()
    assert sim.model.parameters == lbm.TaylorGreen().parameters
    assert torch.equal(sim.state["f"], first)


def test_time_is_the_sum_of_the_steps_that_were_made(tmp_path: Path):
    sim = simulation(pde.Vorticity(dt=0.5))
    sim.schedule(dt="0.25 @ 4 -> 0.5 @ 8..12")
    lengths = [0.5] * 4 + [0.25] * 5 + [0.3125, 0.375, 0.4375] + [0.5] * 8
    times = [sum(lengths[:n]) for n in range(21)]
    series = VtkSeries(tmp_path)
    for time in times:
        assert sim.time == time
        series(sim)
        sim.step()
    assert [time for time, _ in listed(series.path)] == times
    file = sim.save(tmp_path / "end")
    again = simulation(pde.Vorticity(dt=0.5))
    again.load(file)
    assert again.time == sim.time
    sim.reset()
    assert sim.run(time=1.5).steps == 3
    assert sim.run(time=1.5).steps == 5 and sim.time == 3.0
    assert sim.run(time=10).steps == 4 + 18


def test_a_value_that_is_set_in_a_ramp_leaves_the_steps_before_it():
    sim = simulation(pde.Vorticity(dt=0.5))
    sim.schedule(dt="0.25 @ 0..4 -> 0.5 @ 9")
    for _ in range(2):
        sim.step()
    sim.set(dt=0.125)
    assert sim.changes == {"dt": "0.4375 @ 1 -> 0.125 @ 2"}
    assert sim.time == 0.5 + 0.4375
    sim.step()
    assert sim.time == 0.5 + 0.4375 + 0.125


def test_a_case_runs_for_its_time_when_steps_change_their_length():
    case = case_of("vorticity", {"size": "16x16", "time": 4, "set": {"dt": "1 -> 0.25 @ 2"}})
    found = perform(case, resume=False).simulation
    assert (found.step_count, found.time) == (10, 4.0)


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ("0.3", "`0.3` in `rate=0.3` is not a change"),
        ("0.3 @ x", "is not a change"),
        ("0.3 @ 5..5", "must end after it begins"),
        ("0.1 @ 9 -> 0.2 @ 5", "before the change"),
        ("7 @ 5", "must be from 0 to 0.5"),
        ("0.4 @ 5", "0.25"),
        ("nan @ 5", "changes to a number"),
        (5, "a list of pairs"),
        ([5], r"a pair \(step, value\)"),
        ([(-1, 0.1)], "a step of at least 0"),
        ([(1, True)], "changes to a number"),
    ],
)
def test_changes_that_are_impossible_are_refused_at_once(told: Any, text: str):
    sim = simulation(pde.Heat())
    with pytest.raises(ArgumentError, match=text):
        sim.schedule(rate=told)
    assert sim.changes == {}


def test_unknown_parameters_are_named():
    sim = simulation(pde.Heat())
    with pytest.raises(ArgumentError, match="`rat` is not a parameter of Heat"):
        sim.set(rat=0.1)
    with pytest.raises(ArgumentError, match="`rat` is not a parameter of Heat"):
        sim.schedule(rat="0.1 @ 5")
    with pytest.raises(ArgumentError, match=r"must be from 0 to 0.5, got 2"):
        sim.set(rate=2)
    assert sim.model.parameters == pde.Heat().parameters


def test_the_value_at_the_start_stands_before_the_first_arrow():
    assert split_start("100 -> 400 @ 2000 -> 50 @ 3000") == ("100", "400 @ 2000 -> 50 @ 3000")


@given(
    st.lists(st.tuples(st.integers(1, 50), st.floats(-5, 5), st.integers(0, 30)), max_size=5),
    st.integers(0, 400),
)
def test_texts_say_the_whole_schedule(parts: list[tuple[int, float, int]], step: int):
    plan, now = ParameterSchedule(), 0
    for gap, value, ramp in parts:
        now += gap
        end = f"..{now + ramp}" if ramp else ""
        plan = plan.with_changes("x", f"{value!r} @ {now}{end}")
        now += ramp
    again = ParameterSchedule()
    for name, text in plan.texts().items():
        again = again.with_changes(name, text)
    assert again.values({"x": 1.0}, step) == plan.values({"x": 1.0}, step)
    held = [values for since, values in plan.spans({"x": 1.0}) if since <= step]
    assert held[-1] == plan.values({"x": 1.0}, step)
    change = plan.next_change(step)
    if change is not None:
        held = [plan.values({"x": 1.0}, s) for s in range(step, change)]
        assert all(each == held[0] for each in held)


@given(
    st.integers(1, 300), st.sampled_from(["0.2 @ 9", "0.2 @ 40..70", "0.2 @ 9..140 -> 0 @ 200"])
)
def test_a_value_set_within_a_ramp_leaves_what_has_been(step: int, text: str):
    start = {"rate": 0.1}
    plan = ParameterSchedule().with_changes("rate", text)
    after = plan.with_value("rate", 0.05, step, start["rate"])
    again = ParameterSchedule().with_changes("rate", after.texts()["rate"])
    for each in range(step):
        assert again.values(start, each) == plan.values(start, each)
    assert again.values(start, step) == again.values(start, 999) == {"rate": 0.05}
