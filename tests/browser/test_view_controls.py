"""The controls of the live page: what is written, painted and read there."""

import itertools

import pytest
import torch
from playwright.sync_api import Page

from .conftest import happens, reaches
from .test_view import place, state


def write(page: Page, label: str, text: str) -> str:
    """Write into a field; what it then holds."""
    field = page.get_by_label(label, exact=True)
    field.fill(text)
    field.press("Enter")
    page.wait_for_timeout(400)
    return field.input_value()


def test_a_slice_is_a_whole_number_inside_of_the_box(show):
    page = show("life-3d", size="6x8x10").page()
    for text, wanted in (("2.5", 3), ("99", 5), ("-3", 0)):
        assert write(page, "Slice, as a number", text) == str(wanted)
        assert state(page, "slice") == wanted
    assert page.locator(".notice-error").count() == 0


def test_a_parameter_stays_where_it_is_allowed(show):
    here = show("karman", size="48x144")
    page, sim = here.page(), here.session.live.simulation
    page.get_by_role("slider", name="Reynolds").press("Home")
    happens(lambda: sim.model.parameters["reynolds"] < 1)
    assert page.locator(".notice-error").count() == 0
    kept = sim.model.parameters["reynolds"]
    reaches(page, f"Math.abs(window.hotgrid.status.parameters.reynolds - {kept}) < 1e-6")
    assert float(write(page, "Reynolds, as a number", "-5")) == pytest.approx(kept)
    assert "above 0" in page.locator(".notice-error").inner_text()
    assert state(page, "parameters.reynolds") == pytest.approx(kept)


def test_a_number_that_is_none_is_read_as_such(show):
    here = show("karman", size="48x144")
    page, sim = here.page(), here.session.live.simulation
    page.evaluate("location.hash = 'view=speed&colours=constructor'")
    page.reload()
    reaches(page, "window.hotgrid?.connected && window.hotgrid.frame > 0")
    assert state(page, "view") == "speed"
    assert page.get_by_label("Colours", exact=True).input_value() == "auto"
    bottom, _, top, _ = state(page, "region")  # flows are shown with y upwards
    f = sim.state["f"]
    f[:, 10, 100] = torch.nan
    sim.state = {"f": f}
    here.session._wake.set()
    page.mouse.move(*place(page, bottom + top - 10.5, 100.5))
    reaches(page, "document.querySelector('#readout strong')?.textContent === 'not finite'")


def test_parts_of_a_stroke_are_joined(show, monkeypatch):
    here = show("life", size="128x128", set={"density": "0"})
    page, live, parts = here.page(), here.session.live, []
    stroke = live._strokes.stroke
    monkeypatch.setattr(
        live._strokes, "stroke", lambda *told: parts.append(told[5]) or stroke(*told)
    )
    page.keyboard.press("b")
    page.mouse.move(*place(page, 64.5, 10.5))
    page.mouse.down()
    for column in (50.5, 90.5, 120.5):
        # Longer than a message waits for more points.
        page.wait_for_timeout(80)
        page.mouse.move(*place(page, 64.5, column))
    page.mouse.up()
    happens(lambda: bool(live.simulation.cells()[64, 120]))
    assert len(parts) > 2
    assert all(after[0] == before[-1] for before, after in itertools.pairwise(parts))


def test_an_edited_stamp_is_not_called_by_its_old_name(show):
    page = show("life", size="64x64").page()
    stamps = page.get_by_label("Stamp", exact=True).and_(page.locator("select"))
    stamps.select_option(label="Gosper glider gun")
    page.fill("#stamp-rle", "3o!")
    assert stamps.input_value() == ""


@pytest.mark.parametrize("model", ["life", "karman"])
def test_the_narrowest_phone(show, model: str):
    page = show(model, size="64x192", playing=True).page(viewport={"width": 320, "height": 600})
    reaches(page, "window.hotgrid.step > 100")
    # A long text stands beside the step.
    page.fill("#goto", "1000000000000")
    page.keyboard.press("Enter")
    reaches(page, "document.querySelector('#step-note').textContent.includes('of')")
    for width in (320, 400):
        page.set_viewport_size({"width": width, "height": 600})
        assert not page.evaluate(f"document.documentElement.scrollWidth > {width}")


def test_numbers_that_are_colours_have_no_range(show):
    page = show("growing-ca").page()
    reaches(page, "document.querySelector('#range').hidden")
    assert page.get_by_label("Lock the range").is_hidden()
    page.get_by_label("Field").select_option("alpha")
    page.get_by_label("Lock the range").wait_for()


def test_the_token_is_not_in_the_address(show):
    page = show("heat", size="16x16").page()
    page.get_by_label("All models").click()
    page.locator(".card").first.wait_for()
    assert page.url.endswith("/models")
    gallery = show(None).page()
    reaches(gallery, "!location.search.includes('token')")


def test_a_legend_has_the_colours_of_a_picture_that_stands_still(show):
    here = show("life", size="16x16")
    page = here.page()
    end = "document.querySelector('#legend canvas').getContext('2d').getImageData(254, 0, 1, 1)"
    for scheme, alive in (("light", 0), ("dark", 255), ("light", 0)):
        page.emulate_media(color_scheme=scheme)
        reaches(page, f"{end}.data[0] === {alive}")


def test_ticks_of_plots_say_their_numbers(show):
    page = show("heat", size="16x16").page()
    for ticks, wanted in (
        ([98303.999], ["98304"]),
        ([0.995, 1.0], ["0.995", "1"]),
        ([98100, 98200], ["98100", "98200"]),
        ([-20, 0, 20], ["\u221220", "0", "20"]),
        ([98303.998, 98303.999], ["\u22121e\u22123", "98304"]),
    ):
        found = f"import('/page/plots.js').then(({{labels}}) => labels({ticks}))"
        assert page.evaluate(found) == wanted
