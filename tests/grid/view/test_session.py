"""A session without a browser: what viewers ask for is done between two steps."""

import asyncio
import itertools
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from hotgrid.config import case_of, override
from hotgrid.errors import ArgumentError, UnstableError
from hotgrid.grid import Field, Model, Simulation, life, pde
from hotgrid.grid.model import view
from hotgrid.grid.run import prepared
from hotgrid.grid.view import LiveRun, Session
from hotgrid.grid.view._strokes import disc_mask
from hotgrid.web import MessageError

from .test_look import parsed


class Page:
    """A viewer that takes everything at once."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.told: list[dict[str, Any]] = []
        self.frames: list[bytes] = []
        self.stalled = False

    @property
    def ready(self) -> bool:
        return not self.stalled

    @property
    def next_frame(self) -> int:
        return len(self.frames) + 1

    def show(self, frame: bytes) -> None:
        self.frames.append(frame)

    def tell(self, message: dict[str, Any]) -> None:
        self.told.append(json.loads(json.dumps(message, allow_nan=False)))

    def acknowledge(self, frame: int) -> None: ...

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.told if each["type"] == kind]


class Desk:
    """A session, a viewer and a way to wait."""

    def __init__(self, model: str, folder: Path, **told: Any) -> None:
        with override({"compile.enabled": "off"}):
            case = case_of(model, {"device": "cpu", **told})
            self.sim = prepared(case)
        self.session = Session(LiveRun(model, self.sim, case, folder), playing=False).start()
        self.page = Page(1)
        self.session.join(self.page)  # pyright: ignore[reportArgumentType]
        self._id = 0

    def ask(self, kind: str, page: Page | None = None, **fields: Any) -> dict[str, Any]:
        """Send a message and wait for its answer."""
        self._id += 1
        text = json.dumps({"type": kind, "id": self._id, **fields})
        page = page or self.page
        asyncio.run(self.session.receive(page, text))  # pyright: ignore[reportArgumentType]
        return self.until(lambda: next((m for m in page.told if m.get("id") == self._id), None))

    def until(self, found: Callable[[], Any]) -> Any:
        for _ in range(3000):
            value = found()
            if value:
                return value
            time.sleep(0.01)
        raise AssertionError("it did not happen")

    def stopped_at(self, step: int) -> None:
        self.until(lambda: self.sim.step_count == step and self.session._transport.goal is None)


def test_a_step_is_one_step_and_pause_stands_still(desk):
    here = desk("heat", size="16x24")
    assert here.ask("step")["type"] == "done"
    here.stopped_at(1)
    here.ask("step", count=7)
    here.stopped_at(8)
    here.ask("play")
    here.until(lambda: here.sim.step_count > 20)
    here.ask("pause")
    now, frames = here.sim.step_count, None
    for _ in range(3):
        time.sleep(0.05)
        frames = len(here.page.frames) if frames is None else frames
    assert here.sim.step_count == now
    here.until(lambda: parsed(here.page.frames[-1])["step"] == now)
    here.ask("goto", step=now + 100)
    here.stopped_at(now + 100)
    here.ask("goto", step=5)
    here.stopped_at(5)
    alone = Simulation(here.sim.model, size=(16, 24), device="cpu", compiled=False)
    alone.run(5)
    assert torch.equal(here.sim.state["u"], alone.state["u"])


def test_a_rate_is_held(desk):
    here = desk("heat", size="8x8")
    here.ask("speed", rate=50)
    here.ask("play")
    began = time.monotonic()
    here.until(lambda: here.sim.step_count >= 25)
    assert time.monotonic() - began >= 0.4
    here.ask("pause")


def test_a_parameter_changes_between_two_steps_and_is_recorded(desk):
    here = desk("heat", size="8x8", set={"rate": "0.1"})
    here.ask("step", count=3)
    here.stopped_at(3)
    assert here.ask("set", name="rate", value=0.2)["type"] == "done"
    assert here.sim.model.parameters == {"rate": 0.2} and here.sim.changes == {
        "rate": "0.2 @ 3"
    }
    assert "0.25" in here.ask("set", name="rate", value=0.4)["text"]
    assert "not a parameter" in here.ask("set", name="speed", value=1)["text"]
    here.until(lambda: here.page.of("status")[-1]["parameters"] == {"rate": 0.2})
    assert (
        here.page.of("status")[-1]["command"]
        == "hotgrid view heat --size 8x8 --device cpu --set rate=0.2"
    )
    assert here.page.of("status")[-1]["link"] == "/m/heat?size=8x8&set=rate:0.2"
    here.ask("reset")
    assert here.sim.step_count == 0 and here.sim.model.parameters == {"rate": 0.2}


def test_a_stroke_changes_those_cells_and_undo_takes_it_back(desk):
    here = desk("life", size="32x48")
    before = here.sim.cells()
    other = Page(2)
    here.session.join(other)
    points = [[5.5, 5.5], [5.5, 20.5]]
    for part in (points[:1], points):
        here.ask("stroke", stroke=1, brush="cells", value=1.0, radius=1.5, points=part)
    here.ask("stroke", stroke=2, brush="cells", value=0.0, radius=0.4, points=[[5.5, 9.5]])
    wanted = before | disc_mask((32, 48), points, 1.5).byte()
    wanted[5, 9] = 0
    assert torch.equal(here.sim.cells(), wanted)
    assert [each["viewer"] for each in other.of("stroke")] == [1, 1, 1]
    here.ask("undo")
    here.ask("undo")
    assert torch.equal(here.sim.cells(), before)
    here.ask("redo")
    assert here.sim.cells()[5, 9] == 1 and not torch.equal(here.sim.cells(), before)
    here.ask("undo")
    assert "no stroke" in here.ask("undo")["text"]


def test_a_stamped_glider_moves(desk):
    here = desk("life", size="24x24")
    here.ask("stroke", stroke=1, brush="cells", value=0.0, radius=99, points=[[12, 12]])
    here.ask("stamp", rle="bob$2bo$3o!", at=[4.7, 6.2])
    start = life.read_rle("bob$2bo$3o!").placed((24, 24), (4, 6))
    assert torch.equal(here.sim.cells(), start)
    here.ask("step", count=4)
    here.stopped_at(4)
    assert torch.equal(here.sim.cells(), start.roll((1, 1), (0, 1)))
    for rle in ("/etc/passwd.rle", "xyz", "99999999o!"):
        assert here.ask("stamp", rle=rle, at=[0, 0])["type"] == "error"


def test_walls_can_be_painted_into_a_flow(desk):
    here = desk("karman", size="48x144")
    here.ask("step", count=2)
    here.stopped_at(2)
    here.ask("stroke", stroke=1, brush="solid", value=1.0, radius=3, points=[[24, 100]])
    assert bool(here.sim.model.solid((48, 144))[24, 100])
    here.ask("step", count=2)
    here.stopped_at(4)
    assert here.sim.view("speed")[24, 100] == 0
    here.ask("undo")
    here.ask("step", count=2)
    here.stopped_at(6)
    assert here.sim.view("speed")[24, 100] > 0


def test_saves_stay_in_their_folder(desk, tmp_path: Path):
    here = desk("heat", size="8x8")
    here.ask("step", count=3)
    here.stopped_at(3)
    kept = here.sim.state["u"]
    saved = here.ask("save", what="checkpoint", name="one")
    assert saved["url"] == "/saved/one.safetensors"
    assert here.ask("save", what="picture", name="one")["name"] == "one.png"
    here.ask("step", count=3)
    here.stopped_at(6)
    here.ask("load", name="one")
    assert here.sim.step_count == 3 and torch.equal(here.sim.state["u"], kept)
    # Nothing is overwritten.
    here.ask("step", count=3)
    here.stopped_at(6)
    assert here.ask("save", what="checkpoint", name="one")["name"] == "one-2.safetensors"
    here.ask("load", name="one")
    assert here.sim.step_count == 3
    for name in ("../one", "a/b", ".hidden", "", "x" * 65, "one\x00"):
        with pytest.raises((AssertionError, MessageError)):
            assert here.ask("save", what="checkpoint", name=name)["type"] == "saved"
    assert "no file" in here.ask("load", name="two")["text"]
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == [
        "one-2.safetensors",
        "one.png",
        "one.safetensors",
    ]


def test_a_film_is_recorded(desk, tmp_path: Path):
    here = desk("heat", size="16x16")
    here.ask("record", on=True)
    assert "already" in here.ask("record", on=True)["text"]
    here.ask("step", count=5)
    here.stopped_at(5)
    saved = here.ask("record", on=False)
    assert (tmp_path / "saved" / saved["name"]).stat().st_size > 100
    assert "no film" in here.ask("record", on=False)["text"]
    for name in ("waves", "waves-2"):
        here.ask("record", on=True, name="waves")
        assert here.ask("record", on=False)["name"].startswith(f"{name}.")


def test_viewers_look_at_their_own_regions_and_a_stalled_one_gets_nothing(desk):
    here = desk("heat", size="32x32")
    other = Page(2)
    here.session.join(other)
    other.stalled = True
    look = {"view": "u", "region": [4, 8, 12, 24], "pixels": [100, 100]}
    asyncio.run(here.session.receive(here.page, json.dumps({"type": "look", **look})))
    here.until(
        lambda: here.page.frames and parsed(here.page.frames[-1])["region"] == (4, 8, 12, 24)
    )
    held = len(other.frames)
    here.ask("step", count=5)
    here.stopped_at(5)
    here.until(lambda: parsed(here.page.frames[-1])["step"] == 5)
    assert len(other.frames) == held
    other.stalled = False
    here.session._wake.set()
    here.until(lambda: other.frames and parsed(other.frames[-1])["step"] == 5)
    assert parsed(other.frames[-1])["region"] == (0, 0, 32, 32)
    for wrong in ({**look, "view": "none"}, {**look, "range": [2, 1]}):
        with pytest.raises(MessageError):
            asyncio.run(here.session.receive(here.page, json.dumps({"type": "look", **wrong})))


def test_hello_says_what_can_be_seen_and_touched(desk):
    here = desk("karman", size="48x144")
    hello = here.page.of("hello")[0]
    assert hello["views"][0] == "speed" and hello["flow"] and hello["rank"] == 2
    assert next(each["name"] for each in hello["parameters"]) == "reynolds"
    assert {each["kind"] for each in hello["brushes"]} == {"solid", "number"}
    assert {each["radius"] for each in hello["brushes"]} == {3.0}
    status = here.until(lambda: here.page.of("status"))[-1]
    assert status["observables"].keys() <= {*hello["observables"]}


def test_an_unstable_run_pauses_and_says_why(desk, monkeypatch):
    monkeypatch.setattr("hotgrid.grid.view._live._CHECK_EVERY", 0.0)
    here = desk("heat", size="8x8")
    here.sim.state = {"u": torch.full((8, 8), torch.inf)}
    here.ask("play")
    here.until(lambda: any("no longer finite" in m["text"] for m in here.page.of("error")))
    assert not here.session._transport.playing


def test_a_run_that_diverges_goes_back_to_the_last_good_step(desk, monkeypatch):
    monkeypatch.setattr("hotgrid.grid.view._live._CHECK_EVERY", 0.2)
    here = desk("double-shear", size="32x32")
    with pytest.raises(UnstableError) as found:
        here.sim.fork().run(20_000, progress=False)
    here.ask("play")
    bad = found.value.step
    assert bad is not None
    told = here.until(lambda: here.page.of("error"))[-1]["text"]
    assert f"after step {bad:,}; this is step {bad - 1:,}" in told
    assert found.value.cause in told
    assert here.sim.step_count == bad - 1
    assert all(bool(x.isfinite().all()) for x in here.sim.state.values())
    assert not here.session._transport.playing


def test_a_pause_adds_nothing_to_the_history(desk):
    here = desk("heat", size="8x8")
    here.until(lambda: len(here.page.of("status")) > 4)
    assert [step for step, _ in here.session._history] == [0]


def test_earlier_steps_are_without_what_was_painted(desk):
    here = desk("life", size="16x16")
    assert not here.until(lambda: here.page.of("status"))[-1]["painted"]
    here.ask("stroke", stroke=1, brush="cells", value=1, radius=3, points=[[8, 8]])
    here.until(lambda: here.page.of("status")[-1]["painted"])
    here.ask("step", count=3)
    here.stopped_at(3)
    here.ask("goto", step=1)
    here.stopped_at(1)
    assert "without your brush strokes" in here.page.of("notice")[-1]["text"]
    here.until(lambda: not here.page.of("status")[-1]["painted"])


def test_a_value_is_that_of_its_cell(desk):
    here = desk("heat", size="8x8")
    u = here.sim.state["u"]
    found = here.ask("value", at=[2.9, 3.1])
    assert found["at"] == [2, 3] and found["value"] == pytest.approx(float(u[2, 3]))


@pytest.mark.parametrize("radius", [0.0, 1.0, 2.5])
def test_discs_cover_cells_close_to_the_line(radius: float):
    points = [[3.2, 4.9], [10.7, 15.1], [-4.0, 18.0]]
    mask = disc_mask((16, 20), points, radius)
    for y in range(16):
        for x in range(20):
            best = 1e9
            for (a, b), (c, d) in itertools.pairwise(points):
                along = torch.linspace(0, 1, 2001, dtype=torch.float64)
                gap = (a + along * (c - a) - y - 0.5) ** 2 + (
                    b + along * (d - b) - x - 0.5
                ) ** 2
                best = min(best, float(gap.min()) ** 0.5)
            held = any(int(p[0]) == y and int(p[1]) == x and p[0] >= 0 for p in points)
            if abs(best - radius) > 0.01:
                assert bool(mask[y, x]) == (best < radius or held), (y, x)


def test_a_brush_that_is_invalid_is_refused():
    sim = Simulation(life.Life(), size=(8, 64), device="cpu", compiled=False)
    with pytest.raises(ArgumentError, match="no brush `ink`"):
        sim.paint("ink", torch.zeros(8, 64, dtype=torch.bool), 1)
    with pytest.raises(ArgumentError, match="`mask` must be bool"):
        sim.paint("cells", torch.zeros(8, 8, dtype=torch.bool), 1)


@pytest.mark.parametrize("model", [pde.Gas(), pde.ShallowWater(), pde.NavierStokes()])
def test_a_run_bears_what_its_brushes_paint(model: Model):
    mask = torch.zeros(24, 24, dtype=torch.bool)
    mask[8:16, 8:16] = True
    for brush in model.brushes():
        for value in (brush.low, brush.value, brush.high):
            sim = Simulation(model, size=(24, 24), device="cpu", compiled=False)
            sim.paint(brush.name, mask, value)
            sim.run(20)
            assert all(bool(x.isfinite().all()) for x in sim.state.values())
    # What only counts is not painted.
    assert "age" not in [brush.name for brush in model.brushes()]


class Strange(Model):
    """A model with a view that cannot be drawn, and one that fails."""

    fields = (Field("u"),)

    def step(self, state: Any, inputs: Any, params: Any) -> Any:
        return {"u": state["u"].here}

    @view
    def waves(self, state: Any) -> torch.Tensor:
        """Not real."""
        return torch.complex(state["u"], state["u"])

    @view
    def broken(self, state: Any) -> torch.Tensor:
        """Not possible."""
        return state["u"][:, 99]


def test_a_view_that_fails_is_told_once_and_others_go_on(tmp_path: Path):
    sim = Simulation(Strange(), size=(8, 8), device="cpu", compiled=False)
    case = case_of("heat", {"device": "cpu"})
    session = Session(LiveRun("strange", sim, case, tmp_path), playing=False).start()
    here = object.__new__(Desk)
    here.session, here.sim, here.page, here._id = session, sim, Page(1), 0
    session.join(here.page)  # pyright: ignore[reportArgumentType]
    try:
        for name in ("waves", "broken"):
            told = len(here.page.of("error"))
            look = {"type": "look", "view": name, "region": [0, 0, 8, 8], "pixels": [8, 8]}
            asyncio.run(session.receive(here.page, json.dumps(look)))  # pyright: ignore
            here.until(lambda told=told: len(here.page.of("error")) > told)
        told, shown = len(here.page.of("error")), len(here.page.frames)
        look = {"type": "look", "view": "u", "region": [0, 0, 8, 8], "pixels": [8, 8]}
        asyncio.run(session.receive(here.page, json.dumps(look)))  # pyright: ignore
        here.until(lambda: len(here.page.frames) > shown)
        assert len(here.page.of("error")) == told <= 4
    finally:
        session.stop()


def test_the_largest_brush_and_strokes_beside_the_grid(desk):
    here = desk("life", size="32x64")
    before = here.sim.cells()
    stroke = {"stroke": 1, "brush": "cells", "value": 1.0}
    for points in ([[-1e9, 5.0]], [[1e9, -1e9], [1e9, 1e9]], [[-50.0, -50.0], [-40.0, 1e9]]):
        assert here.ask("stroke", **stroke, radius=3, points=points)["type"] == "done"
        assert torch.equal(here.sim.cells(), before)
    here.ask("stroke", **stroke, radius=1e5, points=[[5.0, 5.0]] * 1024)
    assert here.sim.cells().all()
    here.ask("undo")
    assert torch.equal(here.sim.cells(), before)
    for fields in ({"radius": -1}, {"radius": 1e6}, {"points": []}, {"value": None}):
        with pytest.raises(MessageError):
            told = {"type": "stroke", "radius": 1, "points": [[1, 1]], **stroke, **fields}
            asyncio.run(here.session.receive(here.page, json.dumps(told)))


def test_a_viewer_that_comes_late_hears_what_has_been(desk):
    here = desk("heat", size="16x16")
    here.ask("step", count=9)
    here.stopped_at(9)
    here.ask("set", name="rate", value=0.2)
    here.ask("stroke", stroke=1, brush="u", value=3.0, radius=2, points=[[8, 8]])
    late = Page(2)
    here.session.join(late)
    hello = late.of("hello")[0]
    assert hello["parameters"][0]["value"] == 0.2 and hello["units"] == {}
    assert set(late.of("history")[0]["values"]) <= {"heat"}
    here.until(lambda: late.frames)
    theirs = parsed(late.frames[-1])
    assert theirs["step"] == 9
    # The other page may still be about to get its frame of the stroke.
    here.until(
        lambda: here.page.frames and parsed(here.page.frames[-1])["high"] == theirs["high"]
    )


def test_viewers_hear_that_steps_are_compiled(desk, monkeypatch):
    here = desk("heat", size="16x16")
    monkeypatch.setattr(type(here.sim._form), "compiled", True)
    advance, compiled = here.session.live.advance, threading.Event()
    monkeypatch.setattr(
        here.session.live, "advance", lambda steps: compiled.wait(20) and advance(steps)
    )
    here.ask("step")
    here.until(lambda: here.page.of("compiling"))
    late = Page(2)
    here.session.join(late)
    assert [each["type"] for each in late.told] == ["hello", "history", "compiling"]
    assert here.page.told[-1]["type"] in ("compiling", "done")
    compiled.set()
    here.until(lambda: late.told[-1]["type"] == "status" and late.told[-1]["step"] == 1)
    # What has run is compiled.
    here.ask("step", count=3)
    here.stopped_at(4)
    assert len(here.page.of("compiling")) == len(late.of("compiling")) == 1


def test_the_end_does_not_wait_for_a_step_that_is_being_compiled(desk, monkeypatch):
    here = desk("heat", size="16x16")
    monkeypatch.setattr(type(here.sim._form), "compiled", True)
    compiled = threading.Event()
    monkeypatch.setattr(here.session.live, "advance", lambda steps: compiled.wait(60))
    here.ask("step")
    here.until(lambda: here.page.of("compiling"))
    here.session.stop()
    assert here.session._thread.is_alive() and not compiled.is_set()
    compiled.set()
    here.session._thread.join(20)
    assert not here.session._thread.is_alive()


def test_a_reset_keeps_what_was_planned(desk):
    here = desk("heat", size="16x16", set={"rate": "0.05 -> 0.2 @ 30"})
    here.ask("goto", step=40)
    here.stopped_at(40)
    assert here.session.live.simulation.model.rate == 0.2
    here.ask("goto", step=10)
    here.stopped_at(10)
    assert here.session.live.simulation.model.rate == 0.05
    assert "0.05 -> 0.2 @ 30" in here.session.live.command()


def test_a_command_can_be_pasted(desk):
    here = desk("heat", size="16x16", set={"rate": "0.123456789012345"}, dtype="float64")
    command = here.session.live.command()
    assert "rate=0.123456789012345" in command and "--dtype float64" in command
