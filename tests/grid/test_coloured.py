"""Views whose numbers are colours: in pictures, on the page and in the terminal."""

import base64

import numpy as np
import torch
from hypothesis import given, strategies as st

from hotgrid.grid import Field, Model, Picture, Simulation
from hotgrid.grid.model import coded_colours, colour_codes, view
from hotgrid.grid.output import CODED
from hotgrid.grid.output._reduced_view import ReducedView
from hotgrid.grid.view import Eye, Gaze
from hotgrid.grid.view._hello import _maps

WHOLE = (0.0, 0.0, 1e9, 1e9)
shares = st.floats(0, 1, width=32)


class Painted(Model):
    """Random colours that stay."""

    fields = (Field("paint", components=3),)
    coloured = ("colour",)
    picture = "colour"

    def step(self, state, inputs, params):
        return {"paint": state["paint"].here}

    def initial(self, size, generator):
        return {"paint": torch.rand(3, *size, generator=generator)}

    @view
    def colour(self, state):
        return colour_codes(state["paint"])


SIM = Simulation(Painted(), size=(12, 20), compiled=False, device="cpu")
CODES = SIM.view().numpy()


@given(shares, shares, shares)
def test_a_code_is_the_nearest_of_all_colours(red, green, blue):
    given = torch.tensor([red, green, blue])
    away = (coded_colours() - given).square().sum(1)
    assert away[int(colour_codes(given))] <= away.min() + 1e-6


def test_the_palette_has_each_colour_at_its_code():
    shown = CODED.palette()[CODED.levels(CODES)] / 255
    expected = coded_colours().numpy()[CODES]
    assert np.abs(shown - expected).max() <= 0.5 / 255 + 1e-6


def test_a_picture_has_the_colours_and_no_bar():
    picture = Picture(SIM)
    assert len(picture.figure.axes) == 1
    [image] = picture.figure.axes[0].images
    found = image.to_rgba(image.get_array())[..., :3]
    assert np.allclose(found, coded_colours().numpy()[CODES], atol=1e-6)
    picture.redraw()
    assert {tuple(each) for each in CODED.palette()} == {*map(tuple, picture.palette())}


def test_a_frame_has_the_codes_whatever_the_range():
    for chosen in (None, (0.0, 9.0)):
        frame = Eye(SIM).frame(Gaze("colour", WHOLE, range=chosen))
        assert frame.colours == CODED
        assert np.array_equal(frame.values, CODES)


def test_a_smaller_frame_shows_one_cell_of_each_block():
    frame = Eye(SIM).frame(Gaze("colour", WHOLE, pixels=(4, 7)))
    assert np.array_equal(frame.values, CODES[::3, ::3])
    small = ReducedView(SIM).image(4, 7)
    assert set(small.ravel()) <= set(CODES.ravel())


def test_the_page_finds_each_colour_at_its_byte():
    """As `tables.js` spreads 255 bytes over a map of 256 colours."""
    colours = np.frombuffer(base64.b64decode(_maps()["coded"]), np.uint8).reshape(256, 3)
    places = np.floor(np.arange(255) * 255 / 254 + 0.5).astype(int)
    assert np.array_equal(colours[places], CODED.palette()[:255])
