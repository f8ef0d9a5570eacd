"""How many steps are made, how fast that is, and what is looked at when they end."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from hotgrid.config import case_of
from hotgrid.errors import UnstableError
from hotgrid.grid import Simulation, pde
from hotgrid.grid.view import LiveRun, Session
from hotgrid.grid.view._orders import KINDS
from hotgrid.grid.view._step_rate import StepRate
from hotgrid.web import parse_message

from .test_look import parsed
from .test_session import Page


def still(tmp_path: Path) -> Session:
    """A session whose thread does not run."""
    sim = Simulation(pde.Heat(), size=(8, 8), device="cpu", compiled=False)
    return Session(LiveRun("heat", sim, case_of("heat", {}), tmp_path), playing=False)


def test_presses_that_come_faster_than_steps_all_count(tmp_path: Path):
    session = still(tmp_path)
    for count in (1, 1, 10):
        message = parse_message(json.dumps({"type": "step", "count": count}), KINDS)
        session._inbox.put((Page(1), message))  # pyright: ignore
    session._answer()
    while session._advance():
        pass
    assert session.live.simulation.step_count == 12


def test_a_page_that_comes_while_steps_are_compiled_sees_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    session, page = still(tmp_path), Page(1)
    monkeypatch.setattr(type(session.live.simulation._form), "compiled", True)
    with session._maybe_compiling():
        session.join(page)  # pyright: ignore
        [frame] = page.frames
    found = parsed(frame)
    assert found["step"] == 0 and found["region"] == (0, 0, 8, 8)
    late = Page(2)
    session.join(late)  # pyright: ignore
    assert not late.frames


def test_a_page_may_come_while_the_history_grows(tmp_path: Path):
    session, page = still(tmp_path), Page(1)

    class Row(dict[str, float]):
        def get(self, *key: Any) -> Any:
            session._history.append((2, {}))
            return super().get(*key)

    session._first = {"heat": 1.0}
    session._history.append((1, Row(heat=1.0)))
    session.join(page)  # pyright: ignore
    assert page.of("history")[0]["values"] == {"heat": [1.0]}


@pytest.mark.parametrize("rate", [0.7, 1.0, 2.0, 30.0, 4000.0])
def test_a_rate_is_measured_from_step_to_step(rate: float):
    found = StepRate()
    made, seen = 0, []
    found.note(0.0, 0)
    for tick in range(1, 6000):
        now = tick / 1000
        if int(now * rate) > made:
            made = int(now * rate)
            found.note(now, made)
        if tick % 250 == 0 and made > 1:
            seen.append(found.at(now))
    assert len(seen) > 8 and all(x == pytest.approx(rate, rel=0.05) for x in seen)
    # It falls where no step comes.
    assert found.at(60.0) < 0.1 * rate
    found.forget()
    assert found.at(60.0) == 0


@pytest.mark.parametrize("how", ["goto", "pause"])
def test_a_run_that_has_diverged_says_so_where_it_ends(desk, monkeypatch, how: str):
    monkeypatch.setattr("hotgrid.grid.view._live._CHECK_EVERY", 1e9)
    here = desk("double-shear", size="32x32")
    with pytest.raises(UnstableError) as error:
        here.sim.fork().run(20_000, progress=False)
    bad = error.value.step
    assert bad is not None
    here.ask("step")
    here.stopped_at(1)
    if how == "goto":
        here.ask("goto", step=bad + 20)
    else:
        here.ask("play")
        here.until(lambda: here.sim.step_count > bad)
        here.ask("pause")
    told = here.until(lambda: here.page.of("error"))[-1]["text"]
    assert f"this is step {bad - 1:,}" in told
    assert here.sim.step_count == bad - 1 and here.session._transport.goal is None


def test_a_number_that_is_none_is_not_said_to_be_solid(desk):
    here = desk("karman", size="48x144")
    f = here.sim.state["f"]
    f[:, 24, 100] = torch.nan
    here.sim.state = {"f": f}
    found = here.ask("value", view="speed", at=[24.5, 100.5])
    assert found["value"] is None and found["solid"] is False
    solid = here.sim.model.solid((48, 144)).nonzero()[0]
    f[:, *solid] = torch.nan
    here.sim.state = {"f": f}
    found = here.ask("value", view="speed", at=solid.tolist())
    assert found["value"] is None and found["solid"] is True


@pytest.mark.parametrize(
    ("model", "brush", "values"),
    [
        ("heat", "u", (1e39, -1e299)),
        ("life", "cells", (300, -1)),
        ("wireworld", "cells", (4, 200, 2.5)),
        ("hpp", "particles", (16, -1)),
        ("karman", "solid", ()),
    ],
)
def test_a_number_that_no_cell_can_hold_is_refused(desk, model: str, brush: str, values):
    here = desk(model, size="48x144")
    here.ask("play")
    stroke = {"stroke": 1, "brush": brush, "radius": 3, "points": [[8, 8]]}
    for value in values:
        found = here.ask("stroke", **stroke, value=value)
        assert found["type"] == "error" and " from " in found["text"]
        assert here.session._transport.playing
    for name in list(here.sim.model.parameters)[:1]:
        found = here.ask("set", name=name, value=1e299)
        assert found["type"] == "error" and here.session._transport.playing
    assert not here.session.live.painted


def test_a_stamp_that_is_too_large_takes_no_memory(desk, monkeypatch):
    here = desk("life", size="24x24")
    # Nothing but the size may be looked at.
    large = SimpleNamespace(cells=SimpleNamespace(shape=(65536, 65536)))
    monkeypatch.setattr("hotgrid.grid.view._strokes.read_rle", lambda text: large)
    found = here.ask("stamp", rle="x = 65536, y = 65536\no!", at=[0, 0])
    assert "does not fit into 24 x 24" in found["text"]
