"""Which form a simulation takes: by rule if only one can win, else the fastest, with fake
times."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
import torch

from hotgrid.cluster import Communicator, SingleRank, run_ranks
from hotgrid.config import Config, override, use
from hotgrid.errors import ArgumentError
from hotgrid.grid import Field, Model, Simulation, explain_form, life, pde
from hotgrid.grid.forms import Form, Setting, _choice as _form_choice
from hotgrid.grid.forms._choice import CELLS_WORTH_TIMING, candidates_of, chosen_form
from hotgrid.grid.forms._roll import RollForm
from hotgrid.kernels.tune._trials import _contest


class Watch(threading.local):
    """The time of a thread, in seconds, and the forms that have made steps."""

    now: float = 0.0
    made: ClassVar[list[str]] = []


WATCH = Watch()


class Left(RollForm):
    """Two seconds a step; nine where the model says that it is slow."""

    name = "left"
    seconds = 2.0

    def advance(self, steps: int) -> None:
        slow = getattr(self.setting.model, "slow", False)
        WATCH.now += steps * (9.0 if slow and self.name == "left" else self.seconds)
        Watch.made.append(self.name)
        super().advance(steps)


class Right(Left):
    """Three seconds a step."""

    name = "right"
    seconds = 3.0


class Broken(Left):
    """One second a step, if it could make any."""

    name = "broken"

    def advance(self, steps: int) -> None:
        raise RuntimeError("no kernel")


class Adding(Model):
    fields = (Field("u"),)
    forms: ClassVar[tuple[type[Form], ...]] = (Right, Left)

    def own_forms(self):
        return self.forms

    def step(self, state, inputs, params):
        return {"u": state["u"].here + state["u"][0, 1] + 1}


@pytest.fixture(autouse=True)
def fake_times(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def clock(run) -> float:
        before = WATCH.now
        run()
        return WATCH.now - before

    monkeypatch.setattr(_contest, "clock_of", lambda device: clock)
    monkeypatch.setattr(_contest, "_FOUND", {})
    monkeypatch.setattr(_form_choice, "CELLS_WORTH_TIMING", 1)
    WATCH.now, Watch.made = 0.0, []
    quick = {"autotune.cache": "none", "autotune.warmups": 0, "autotune.samples": 1}
    with use(Config()), override(quick):
        yield


def simulation(model: Model | None = None, **options) -> Simulation:
    return Simulation(model or Adding(), size=(6, 4), device="cpu", compiled=False, **options)


def test_the_fastest_is_taken_before_the_first_step():
    sim = simulation()
    assert (sim.form, Watch.made) == ("undecided", [])
    sim.run(3, progress=False)
    assert sim.form == sim.form_name == "left"
    plain = simulation(form="roll")
    plain.run(3, progress=False)
    assert torch.equal(sim.state["u"], plain.state["u"])


def test_a_single_step_and_a_fork_choose_too():
    sim = simulation()
    twin = sim.fork()
    sim.step()
    twin.step()
    assert (sim.form, twin.form, sim.fork().form) == ("left", "left", "left")
    assert torch.equal(sim.state["u"], twin.state["u"])


def test_timing_leaves_the_state_alone():
    sim = simulation(state={"u": torch.arange(24.0).reshape(6, 4)})
    sim.run(0, progress=False)
    assert torch.equal(sim.state["u"], torch.arange(24.0).reshape(6, 4))


def test_a_form_that_is_named_is_taken_without_timing():
    sim = simulation(form="right")
    sim.run(2, progress=False)
    assert (sim.form, set(Watch.made)) == ("right", {"right"})


def test_it_is_timed_once_for_a_setting_and_kept_for_later_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with override({"autotune.cache": {"file": str(tmp_path)}}):
        simulation().step()
        assert "right" in Watch.made
        monkeypatch.setattr(_contest, "_FOUND", {})  # as in another process
        Watch.made = []
        sim = simulation()
        assert sim.form == "left"
        sim.step()
        assert Watch.made == ["left"]
        # Another setting is another question.
        assert simulation(batch=2).form == "undecided"
        assert simulation(dtype=torch.float64).form == "undecided"


class AddingTwo(Adding):
    def step(self, state, inputs, params):
        return {"u": state["u"].here + state["u"][0, 1] + 2}


class Choosy(Adding):
    def __init__(self, far: int) -> None:
        super().__init__()
        self.far = far


@pytest.mark.parametrize("others", [(Adding(), AddingTwo()), (Choosy(1), Choosy(2))])
def test_models_are_distinguished_by_class_code_and_choices(others: tuple[Model, Model]):
    simulation(others[0]).step()
    assert simulation(others[0]).form == "left"
    assert simulation(others[1]).form == "undecided"


def test_one_that_fails_is_passed_over(capsys: pytest.CaptureFixture[str]):
    model = Adding()
    model.forms = (Broken, Right)
    sim = simulation(model)
    sim.run(2, progress=False)
    assert sim.form == "right"
    assert "candidate `broken` cannot win: RuntimeError: no kernel" in capsys.readouterr().err


def test_where_all_fail_the_first_one_says_what_is_wrong():
    model = Adding()
    model.forms = (Broken, type("Second", (Broken,), {"name": "second"}))
    with pytest.raises(RuntimeError, match="no kernel"):
        simulation(model).run(2, progress=False)


def test_small_grids_take_the_first_one_without_timing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_form_choice, "CELLS_WORTH_TIMING", CELLS_WORTH_TIMING)
    sim = simulation()
    assert (sim.form, Watch.made) == ("right", [])


def test_ranks_take_the_same_form_even_if_their_own_fastest_differs():
    def part(ranks: Communicator) -> tuple[str, str, torch.Tensor]:
        model = Adding()
        # The second rank finds `left` slow. Winners are kept by the choices of a model, so
        # that the ranks, which are threads here, do not take each other's.
        model.slow = bool(ranks.rank)
        sim = simulation(model, mesh="2x1", communicator=ranks, overlap=False, depth=1)
        before = sim.form
        sim.run(5, progress=False)
        return before, sim.form, sim.state["u"]

    plain = simulation(form="roll")
    plain.run(5, progress=False)
    for before, after, u in run_ranks(2, part):
        # The slowest rank counts: nine seconds of `left` against three of `right`.
        assert (before, after) == ("undecided", "right")
        assert torch.equal(u, plain.state["u"])


def test_ranks_of_a_small_grid_agree_without_asking(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_form_choice, "CELLS_WORTH_TIMING", CELLS_WORTH_TIMING)

    def part(ranks: Communicator) -> str:
        return simulation(mesh="2x1", communicator=ranks).form

    assert run_ranks(2, part) == ["right", "right"]


def test_an_explanation_has_times_and_reasons():
    found = explain_form(simulation())
    assert found.call.startswith("grid float32 cpu Adding size=6x4 batch=none storage=float32")
    assert found.chosen == "left"
    names = [each.name for each in found.ranking.outcomes]
    assert set(names) == {"left", "right", "strips", "padded", "roll"}
    assert found.obstacles == {"graph": "it records CUDA graphs and needs a GPU"}
    assert found.drawbacks == {
        "strips": "it gains only where steps are compiled for a GPU",
        "padded": "it gains only where steps are compiled for a CPU",
    }


def test_a_cut_grid_is_not_explained():
    with pytest.raises(ArgumentError, match="without a `mesh`"):
        explain_form(simulation(mesh="1x1", communicator=SingleRank()))


# The rules, which only exclude; nothing is run, so that a GPU need not be there.


def setting(model: Model, size: tuple[int, ...], *, device="cuda", compiled=True) -> Setting:
    return Setting(
        model=model,
        size=size,
        batch=(),
        device=torch.device(device),
        dtype=torch.float32,
        storage=torch.float32,
        inputs={},
        params={},
        compiled=compiled,
    )


@pytest.mark.parametrize(
    ("model", "size", "options", "names"),
    [
        (pde.Heat(), (512, 512, 512), {}, ["roll", "strips"]),
        (pde.Heat(), (4096, 4096), {}, ["strips", "roll"]),
        (pde.Heat(), (4095, 4096), {}, ["roll"]),
        (pde.Heat(), (64, 64), {}, ["graph", "strips", "roll"]),
        (pde.Heat(), (64, 64), {"compiled": False}, ["roll"]),
        (pde.Heat(), (64, 64), {"device": "cpu"}, ["padded"]),
        (pde.Heat(), (4096, 4096), {"device": "cpu"}, ["padded"]),
        (pde.Heat(), (64, 64), {"device": "cpu", "compiled": False}, ["roll"]),
    ],
)
def test_rules_leave_those_that_may_win(model, size, options, names):
    assert [kind.name for kind in candidates_of(setting(model, size, **options))] == names


def test_a_form_of_the_models_own_is_not_timed_against_those_of_all_models():
    sim = Simulation(life.Life(), size=(64, 64), device="cpu", compiled=True)
    assert sim.form == "native"
    assert chosen_form(sim._setting, "roll").name == "roll"
