"""The engine: how time passes, how speed is measured, and work without a compiler."""

from pathlib import Path
from typing import Any

import pytest
import torch

from hotgrid.config import override
from hotgrid.errors import ArgumentError, MissingPartError
from hotgrid.grid import (
    Simulation,
    Speed,
)

from .engine_case import SIZE, simulation

# How time passes.


@pytest.mark.parametrize("form", ["roll", "padded"])
def test_steps_and_time_add_up(form: str):
    sim = simulation(form=form)
    assert sim.form == form
    assert sim.run(3).steps == 3
    sim.step()
    assert (sim.step_count, sim.time) == (4, pytest.approx(0.4))
    sim.run(time=0.3)
    assert sim.step_count == 7
    sim.run(time=0.25)
    assert sim.step_count == 10
    assert sim.run(0).steps == 0
    assert sim.state["age"].eq(10).all()


def test_callbacks_come_after_every_so_many_steps_of_all_runs():
    sim, seen = simulation(), []
    sim.step()
    sim.every(4, lambda s: seen.append((4, s.step_count, int(s.state["age"][0, 0]))))
    sim.every(6, lambda s: seen.append((6, s.step_count, int(s.state["age"][0, 0]))))
    sim.run(10, check_every=5)
    sim.run(5)
    assert seen == [(4, 4, 4), (6, 6, 6), (4, 8, 8), (4, 12, 12), (6, 12, 12), (4, 16, 16)]


@pytest.mark.parametrize("form", ["roll", "padded"])
def test_events_do_not_change_the_numbers(form: str):
    plain, watched = simulation(form=form), simulation(form=form)
    watched.every(3, lambda s: s.observe())
    plain.run(20)
    watched.run(20, check_every=7)
    assert torch.equal(plain.state["heat"], watched.state["heat"])


def test_a_run_ends_when_its_condition_holds():
    sim, asked = simulation(), []

    def late(s: Simulation) -> bool:
        asked.append(s.step_count)
        return s.step_count >= 30

    assert sim.run(until=late, check_every=10).steps == 30
    assert asked == [10, 20, 30]
    assert sim.run(5, until=lambda s: False, check_every=2).steps == 5


def test_the_condition_of_a_run_is_asked_at_its_last_step_too():
    sim, asked = simulation(), []
    sim.run(25, until=lambda s: asked.append(s.step_count), check_every=10, progress=False)  # pyright: ignore[reportArgumentType]
    assert asked == [10, 20, 25]


def test_a_time_is_rounded_up_to_whole_steps():
    sim = simulation()
    step = sim.model.time_step
    assert sim.run(time=2.25 * step, progress=False).steps == 3
    assert sim.run(time=3 * step, progress=False).steps == 3


def test_a_callback_may_go_back_to_the_start():
    sim = simulation()
    sim.every(4, lambda s: s.reset())
    assert sim.run(10).steps == 10
    assert sim.step_count == 2
    assert sim.state["age"].eq(2).all()


@pytest.mark.parametrize("form", ["roll", "padded"])
def test_a_running_state_cannot_be_written_by_accident(form: str):
    mine = torch.rand(SIZE)
    weight = torch.ones(SIZE)
    sim = simulation(state={"heat": mine}, inputs={"weight": weight}, form=form)
    expected = mine.clone()
    mine.zero_()
    weight.zero_()
    sim.state["heat"].zero_()
    assert torch.equal(sim.state["heat"], expected)
    sim.run(2)
    assert not torch.equal(sim.state["heat"], expected)
    sim.reset()
    assert torch.equal(sim.state["heat"], expected)
    other = torch.rand(SIZE, requires_grad=True)
    sim.state = {"heat": other}
    assert not sim.state["heat"].requires_grad
    other.data.zero_()
    assert sim.state["heat"].gt(0).any()


@pytest.mark.parametrize("form", ["roll", "padded"])
def test_a_state_can_be_set_in_part(form: str):
    sim = simulation(form=form)
    sim.run(3)
    sim.state = {"heat": torch.zeros(SIZE)}
    assert sim.state["age"].eq(3).all()
    assert sim.step_count == 3
    sim.run(2)
    assert sim.state["heat"].eq(0).all()
    with pytest.raises(ArgumentError, match="`age` in `state` does not match"):
        sim.state = {"age": torch.zeros(3, 3)}
    assert sim.state["age"].eq(5).all()


def test_a_fork_has_no_callbacks_and_a_clock_of_its_own():
    sim, seen = simulation(), []
    sim.every(1, seen.append)
    sim.run(2)
    twin = sim.fork()
    twin.run(3)
    assert seen == [sim, sim]
    assert (sim.step_count, twin.step_count) == (2, 5)
    assert sim.state["age"].eq(2).all()


def test_a_batch_takes_one_state_for_all_or_one_for_each():
    one, each = torch.rand(SIZE), torch.rand(3, *SIZE)
    sim = simulation(batch=3, state={"heat": one})
    assert torch.equal(sim.state["heat"], one.expand(3, *SIZE))
    sim.state = {"heat": each}
    sim.run(2)
    assert sim.state["heat"].shape == (3, *SIZE)
    assert sim.view().shape == (3, *SIZE)
    assert sim.observe()["warmth"] == pytest.approx(each.double().sum((1, 2)).tolist())


def test_runs_of_a_batch_begin_differently_and_the_same_way_each_time():
    first, again = simulation(batch=2, seed=5), simulation(batch=2, seed=5)
    assert torch.equal(first.state["heat"], again.state["heat"])
    assert not torch.equal(first.state["heat"][0], first.state["heat"][1])


# How fast it was.


def test_speed_is_steps_in_time_without_the_start_up():
    speed = Speed(
        steps=101,
        seconds=2.0,
        startup_seconds=9.0,
        cells=1_000_000,
        bytes_per_step=8_000_000,
        startup_steps=1,
    )
    assert speed.steps_per_second == 50
    assert speed.mlups == 50
    assert speed.bytes_per_second == 4e8
    assert Speed(1, 1e-9, 5.0, 10, 10, startup_steps=1).mlups == 0


def test_a_run_shows_its_cells_and_the_bytes_it_must_move():
    sim = simulation(batch=3, storage=torch.float16)
    speed = sim.run(5)
    assert sim.speed is speed
    assert (speed.steps, speed.startup_steps, speed.cells) == (5, 1, 240)
    # Heat in two bytes and age in four, read and written, for three runs; one weight.
    assert speed.bytes_per_step == 3 * 80 * 2 * (2 + 4) + 80 * 2


class Clock:
    """A clock on which a step takes three seconds, and the very first ten more."""

    def __init__(self, sim: Simulation) -> None:
        self.now, self.sim = 100.0, sim
        self.run = sim._form.run

    def perf_counter(self) -> float:
        return self.now

    def steps(self, steps: int) -> None:
        self.now += 3.0 * steps + (10.0 if self.sim.step_count == 0 else 0.0)
        self.run(steps)


def test_the_first_step_and_callbacks_are_not_counted_as_the_time_of_the_steps(
    monkeypatch: pytest.MonkeyPatch,
):
    sim = simulation()
    clock = Clock(sim)
    monkeypatch.setattr("hotgrid.grid.run._pace.time", clock)
    monkeypatch.setattr(sim._form, "run", clock.steps)
    speed = sim.run(5)
    assert (speed.seconds, speed.startup_seconds, speed.startup_steps) == (12.0, 13.0, 1)
    assert speed.steps_per_second == 4 / 12
    sim.every(2, lambda sim: setattr(clock, "now", clock.now + 50))
    speed = sim.run(4)
    assert (speed.seconds, speed.startup_seconds) == (12.0, 0.0)


def test_only_what_compiles_has_a_start_up():
    sim = simulation()
    assert sim.run(1).startup_steps == 1
    again = sim.run(2)
    assert (again.startup_steps, again.startup_seconds) == (0, 0)
    assert sim.fork().run(1).startup_steps == 1


def test_a_progress_bar_shows_the_speed_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    limit = type("Bandwidth", (), {"bytes_per_second": 1e9})
    monkeypatch.setattr("hotgrid.kernels.kept_bandwidth", lambda device: limit)
    simulation().run(3, progress=True)
    assert "Spread" in capsys.readouterr().err
    simulation().run(3)
    simulation().run(3, progress=False)
    assert capsys.readouterr().err == ""


# Without a compiler.


def no_compiler(function: Any, **options: Any) -> Any:
    """What torch.compile is on a machine without a C++ compiler."""

    def call(*args: Any) -> Any:
        from torch._dynamo.exc import BackendCompilerFailed

        raise BackendCompilerFailed(no_compiler, RuntimeError("no C++ compiler found"), None)

    return call


@pytest.mark.parametrize("form", ["roll", "padded"])
def test_without_a_compiler_it_runs_uncompiled_and_says_so_once(
    form: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))  # nothing is kept there
    eager = simulation(form=form)
    eager.run(5)
    monkeypatch.setattr(torch, "compile", no_compiler)
    sim = simulation(form=form, compiled=None)
    sim.run(5)
    assert torch.equal(sim.state["heat"], eager.state["heat"])
    [notice] = capsys.readouterr().err.splitlines()
    assert "steps run uncompiled" in notice
    assert "no C++ compiler found" in notice
    assert "`hotgrid doctor`" in notice


def test_a_setting_can_insist_on_compiling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(torch, "compile", no_compiler)
    with override({"compile.enabled": "on"}):
        sim = simulation(compiled=None)
        said = r"`compile.enabled` is `on`, but .*no C\+\+ compiler found; `hotgrid doctor`"
        with pytest.raises(MissingPartError, match=said):
            sim.run(1)


def test_a_setting_can_forbid_compiling(monkeypatch: pytest.MonkeyPatch):
    def compile_(function: Any, **options: Any) -> Any:
        raise AssertionError("compiled all the same")

    monkeypatch.setattr(torch, "compile", compile_)
    with override({"compile.enabled": "off"}):
        simulation(compiled=None).run(2)
