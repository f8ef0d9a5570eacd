"""The live page in a real browser."""

import itertools
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Page

from hotgrid.grid.output import solid_cells
from hotgrid.grid.view import ViewApp

from .conftest import happens, reaches, shoot, violations


def state(page: Page, name: str) -> Any:
    return page.evaluate(f"window.hotgrid.{name}")


def picture(page: Page) -> bytes:
    return page.locator("#canvas").screenshot()


def test_the_picture_changes_while_it_runs_and_stands_still_when_paused(show):
    here = show("gray-scott", size="64x64", playing=True)
    page = here.page()
    first, step = picture(page), state(page, "step")
    reaches(page, f"window.hotgrid.step > {step} + 50")
    assert picture(page) != first
    page.click("#play")
    reaches(page, "!window.hotgrid.playing")
    page.wait_for_timeout(300)
    first, step = picture(page), state(page, "step")
    page.wait_for_timeout(500)
    assert picture(page) == first and state(page, "step") == step


def test_step_and_reset(show):
    here = show("heat", size="32x32")
    page = here.page()
    for wanted in (1, 2):
        page.click("#step")
        reaches(page, f"window.hotgrid.step === {wanted}")
    page.wait_for_timeout(200)
    assert here.session.live.simulation.step_count == 2
    page.keyboard.press(".")
    reaches(page, "window.hotgrid.step === 3")
    page.click("#reset")
    reaches(page, "window.hotgrid.step === 0")
    # A button that was clicked does not keep the focus, so Space does not press it again.
    page.keyboard.press("Space")
    reaches(page, "window.hotgrid.playing && window.hotgrid.step > 5")
    page.keyboard.press("Space")
    reaches(page, "!window.hotgrid.playing")


def test_it_says_that_steps_are_compiled(show, monkeypatch):
    here = show("heat", size="32x32")
    page = here.page()
    live, compiled = here.session.live, threading.Event()
    advance = live.advance
    monkeypatch.setattr(type(live.simulation._form), "compiled", True)
    monkeypatch.setattr(live, "advance", lambda steps: compiled.wait(60) and advance(steps))
    note = page.locator("#compiling")
    assert note.is_hidden()
    page.click("#step")
    note.wait_for(state="visible")
    compiled.set()
    note.wait_for(state="hidden")
    reaches(page, "window.hotgrid.step === 1")


def test_a_slider_changes_the_parameter(show):
    here = show("karman", size="48x144")
    page = here.page()
    slider = page.get_by_role("slider", name="Reynolds")
    slider.focus()
    page.keyboard.press("ArrowRight")
    reaches(page, "window.hotgrid.parameters.reynolds !== 150")
    # The page shows what was chosen before the server has set it.
    simulation = here.session.live.simulation
    happens(lambda: simulation.model.parameters["reynolds"] != 150)
    value = simulation.model.parameters["reynolds"]
    reaches(page, f"Math.abs(window.hotgrid.parameters.reynolds - {value}) < 1e-6")


def test_a_button_that_was_reached_by_keyboard_is_pressed_by_space(show):
    page = show("heat", size="32x32").page()
    page.focus("#step")
    for wanted in (1, 2):
        page.keyboard.press("Space")
        reaches(page, f"window.hotgrid.step === {wanted}")
    assert not state(page, "playing")


def test_a_checkpoint_is_saved_and_loaded_from_the_page(show):
    here = show("heat", size="32x32")
    page = here.page()
    page.click("#step")
    reaches(page, "window.hotgrid.step === 1")
    kept = here.session.live.simulation.state["u"]
    page.keyboard.press("k")
    reaches(page, "window.hotgrid.saved?.includes('heat')")
    for wanted in (2, 3):
        page.click("#step")
        reaches(page, f"window.hotgrid.step === {wanted}")
    page.evaluate("document.querySelector('#saved').closest('details').open = true")
    page.locator("#saved + button").click()
    reaches(page, "window.hotgrid.step === 1")
    assert torch.equal(here.session.live.simulation.state["u"], kept)


def test_a_page_that_comes_late_shows_what_others_have_done(show):
    here = show("life", size="64x64", set={"density": "0"})
    one = here.page()
    one.keyboard.press("b")
    stroke(one, 40.5, 20.5)
    happens(lambda: bool(here.session.live.simulation.cells().any()))
    one.click("#step")
    reaches(one, "window.hotgrid.step === 1")
    two = here.page()
    reaches(two, "window.hotgrid.step === 1")
    painted = picture(two)
    # What the late page shows is what the early one has painted: taken back, it is gone.
    one.keyboard.press("Control+z")
    for _ in range(100):
        if picture(two) != painted:
            break
        two.wait_for_timeout(50)
    assert picture(two) != painted


def test_a_link_with_other_options_has_a_simulation_of_its_own(show):
    here = show("heat", size="32x32")
    first = here.page()
    other = here.page("/m/heat?size=16x24&set=rate:0.05&seed=3")
    assert state(other, "size") == [16, 24] and state(other, "seed") == 3
    assert state(other, "parameters.rate") == pytest.approx(0.05)
    other.click("#step")
    reaches(other, "window.hotgrid.step === 1")
    assert state(first, "step") == 0 and state(first, "size") == [32, 32]
    # The link of what runs leads to what runs.
    again = here.page(state(other, "status.link"))
    reaches(again, "window.hotgrid.step === 1 && window.hotgrid.viewers === 2")


def test_a_legend_has_its_unit_and_a_solid_no_value(show):
    here = show("karman", size="48x144")
    page, sim = here.page(), here.session.live.simulation
    for _ in range(600):
        if page.locator("[data-part=unit]").inner_text():
            break
        page.wait_for_timeout(30)
    assert page.locator("[data-part=unit]").inner_text() in ("1/step", "cells/step")
    solid = solid_cells(sim)
    assert solid is not None
    row, column = (solid.nonzero().double().mean(0) + 0.5).tolist()
    bottom, _, top, _ = state(page, "region")  # flows are shown with y upwards
    page.mouse.move(*place(page, bottom + top - row, column))
    page.wait_for_timeout(600)  # the server has told the number that is stored there
    assert page.locator("#readout strong").inner_text() == "solid"
    page.mouse.move(*place(page, bottom + top - row, column + 30))
    happens(lambda: page.locator("#readout strong").inner_text() not in ("solid", "\u2026"))


def test_the_page_takes_rapid_resizes_and_huge_brushes(show):
    here = show("life", size="64x64")
    page = here.page()
    page.keyboard.press("b")
    for n in range(30):
        page.set_viewport_size({"width": 400 + 37 * n % 800, "height": 300 + 53 * n % 600})
    page.set_viewport_size({"width": 1000, "height": 700})
    for _ in range(40):
        page.keyboard.press("Shift+}")
    stroke(page, 30.5, 30.5)
    page.keyboard.press("0")
    page.click("#step")
    reaches(page, "window.hotgrid.step === 1")
    y0, x0, y1, x1 = state(page, "region")
    assert y1 > y0 and x1 > x0


def place(page: Page, row: float, column: float) -> tuple[float, float]:
    """Where the canvas shows a cell, by the region that the page says it shows."""
    box = page.locator("#canvas").bounding_box()
    assert box is not None
    y0, x0, y1, x1 = state(page, "region")
    x = box["x"] + (column - x0) / (x1 - x0) * box["width"]
    return x, box["y"] + (row - y0) / (y1 - y0) * box["height"]


def stroke(page: Page, row: float, column: float) -> None:
    """Press the canvas at a cell."""
    page.mouse.click(*place(page, row, column))


def test_a_stroke_changes_those_cells_on_both_pages(show):
    here = show("life", size="64x64", set={"density": "0"})
    one, two = here.page(), here.page()
    sim = here.session.live.simulation
    reaches(two, "window.hotgrid.viewers === 2")
    one.keyboard.press("b")
    before = picture(two)
    stroke(one, 20.5, 30.5)
    happens(lambda: bool(sim.cells().any()))
    painted = sim.cells().nonzero()
    assert (
        len(painted)
        and (painted.double().mean(0) - torch.tensor([20.0, 30.0])).abs().max() < 1.5
    )
    happens(lambda: picture(two) != before)
    one.keyboard.press("Control+z")
    happens(lambda: not sim.cells().any())


def test_a_stamped_glider_moves(show):
    here = show("life", size="32x64", set={"density": "0"})
    page = here.page()
    sim = here.session.live.simulation
    page.keyboard.press("t")
    stroke(page, 12.5, 20.5)
    happens(lambda: bool(sim.cells().any()))
    first = sim.cells()
    assert first.sum() == 5
    for wanted in range(1, 5):
        page.click("#step")
        reaches(page, f"window.hotgrid.step === {wanted}")
    shifts = [first.roll((y, x), (0, 1)) for y in (-1, 1) for x in (-1, 1)]
    assert any(torch.equal(sim.cells(), each) for each in shifts)


def test_a_locked_range_holds(show):
    here = show("heat", size="32x32")
    page = here.page()
    page.get_by_role("radio", name="Locked").or_(
        page.get_by_text("Locked", exact=True)
    ).first.click()
    page.wait_for_timeout(300)
    locked = state(page, "range")
    page.click("#play")
    reaches(page, "window.hotgrid.step > 200")
    page.click("#play")
    page.wait_for_timeout(300)
    assert state(page, "range") == locked


def test_it_reconnects_after_the_server_was_started_again(show, tmp_path: Path):
    here = show("heat", size="32x32")
    page = here.page()
    port, token = here.server.port, here.server.token
    here.server.stop()
    reaches(page, "!window.hotgrid.connected")
    shoot(page, "view-lost")
    with ViewApp(here.app._case, tmp_path, playing=False).serve(port, token=token):
        reaches(page, "window.hotgrid.connected && window.hotgrid.frame > 0")
        page.click("#step")
        reaches(page, "window.hotgrid.step === 1")
    here.problems[:] = [p for p in here.problems if "WebSocket" not in p and "ERR_" not in p]


def pages() -> list[Any]:
    """Both pages in both schemes at both widths; `make test` opens one of each."""
    found = itertools.product(("light", "dark"), (1280, 400), ("karman", None))
    short = (("light", 1280, "karman"), ("dark", 400, None))
    return [
        pytest.param(*each, marks=[pytest.mark.long] * (each not in short)) for each in found
    ]


@pytest.mark.parametrize(("scheme", "width", "model"), pages())
def test_axe_finds_nothing(show, scheme: str, width: int, model: str | None):
    here = show(model, **({} if model is None else {"size": "48x144"}))
    page = here.page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.wait_for_timeout(500)
    shoot(page, f"{model or 'gallery'}-{scheme}-{width}")
    assert violations(page) == []
    if model:
        name = page.locator("#canvas").get_attribute("aria-label") or ""
        assert "Karman" in name
    across = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert across <= 0


def test_the_sheet_of_keys_and_the_help(show):
    page = show("heat", size="32x32").page()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    assert "Space" in dialog.inner_text()
    shoot(page, "view-keys")
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")


def test_three_dims_are_shown_as_slices_and_as_a_volume(show):
    here = show(
        "life-3d",
        size="24x24x24",
    )
    page = here.page()
    first = picture(page)
    page.keyboard.press("]")
    page.wait_for_timeout(400)
    assert picture(page) != first
    shoot(page, "view-slices")
    page.keyboard.press("o")
    reaches(page, "window.hotgrid.volume")
    page.wait_for_timeout(800)
    shoot(page, "view-volume")
