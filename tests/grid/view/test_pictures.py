"""Pictures and films show what the viewer sees who asked for them."""

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.image import imread

from hotgrid.grid import Picture, Simulation, pde
from hotgrid.grid.output import Aspect
from hotgrid.web import MessageError

from .conftest import Desk
from .test_look import parsed


def look(here: Desk, **told: Any) -> None:
    message = {"type": "look", "region": [0, 0, 1e6, 1e6], "pixels": [100, 100], **told}
    asyncio.run(here.session.receive(here.page, json.dumps(message)))  # pyright: ignore


def kept(path: Path) -> np.ndarray:
    return (255 * imread(path)[..., :3]).round().astype(int)


def test_a_picture_shows_field_colours_and_range_of_its_viewer(desk, tmp_path: Path):
    here = desk("karman", size="48x144")
    look(here, view="velocity_x", range=[0.0, 0.5])
    saved = here.ask("save", what="picture", name="seen", colours="viridis")
    wanted = tmp_path / "wanted.png"
    Picture(here.sim, Aspect("velocity_x", "viridis", (0.0, 0.5))).save(wanted)
    found = kept(tmp_path / "saved" / saved["name"])
    assert np.array_equal(found, kept(wanted))
    # The colour of a number in that map over that range.
    u = float(here.sim.view("velocity_x")[24, 100])
    colour = (255 * np.array(colormaps["viridis"](u / 0.5)[:3])).round().astype(int)
    assert (found == colour).all(-1).any()
    with pytest.raises(MessageError):
        here.ask("save", what="picture", name="seen", colours="no map")


def test_a_film_shows_what_its_viewer_sees(desk):
    here = desk("karman", size="48x144")
    look(here, view="velocity_y", range=[-0.1, 0.1])
    here.ask("record", on=True, colours="cividis")
    assert here.session.live._film is not None
    picture = here.session.live._film[0]._picture
    assert picture.view == "velocity_y"
    shown = picture._drawn
    assert shown.get_clim() == (-0.1, 0.1) and shown.get_cmap().name == "cividis"
    here.ask("record", on=False)


def test_a_film_that_cannot_be_written_is_over_and_said_once(desk):
    here = desk("heat", size="16x16")
    here.ask("record", on=True)
    film = here.session.live._film[0]
    film.take = lambda simulation: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    here.until(lambda: not here.session.live.recording)
    here.ask("step", count=3)
    here.stopped_at(3)
    [told] = here.page.of("error")
    assert told["text"] == "the film cannot be continued: No space left on device"
    assert "no film" in here.ask("record", on=False)["text"]


@pytest.mark.parametrize("back", ["undo", "reset", "load"])
def test_the_range_begins_anew_where_the_state_jumps(desk, back: str):
    here = desk("heat", size="16x16")
    range_of = lambda: (found := parsed(here.page.frames[-1]))["low"] + found["high"]
    here.until(lambda: here.page.frames)
    here.ask("save", what="checkpoint", name="start")
    stroke = {"stroke": 1, "brush": "u", "radius": 3, "points": [[8, 8]]}
    here.ask("stroke", **stroke, value=50.0)
    here.until(lambda: range_of() == 50)
    here.ask(back, **({"name": "start"} if back == "load" else {}))
    here.until(lambda: range_of() == 1)


def test_a_picture_of_a_box_is_the_slice_that_is_seen(desk, monkeypatch):
    here, drawn = desk("life-3d", size="6x8x10"), []
    monkeypatch.setattr(
        Picture, "save", lambda self, path: drawn.append(np.array(self._drawn.get_array()))
    )
    look(here, view="alive", axis=2, slice=7)
    here.ask("save", what="picture", name="box")
    assert np.array_equal(drawn[0], here.sim.view("alive")[:, :, 7].numpy())
    look(here, view="alive", axis=1, slice=99)
    here.ask("save", what="picture", name="box")
    assert np.array_equal(drawn[1], here.sim.view("alive")[:, 7].numpy())


def test_limits_of_a_curve_hold_while_it_moves():
    sim = Simulation(pde.Heat(), size=(32,), device="cpu", compiled=False)
    picture = Picture(sim, Aspect("u", limits=(-2.0, 3.0)))
    sim.run(3, progress=False)
    picture.redraw()
    assert picture._axes.get_ylim() == (-2.0, 3.0)
