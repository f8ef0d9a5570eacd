"""Pictures show what they say: the colours, the limits, the slice, the solid cells."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from hotgrid.errors import ArgumentError, MissingPartError
from hotgrid.grid import Picture, Simulation, draw, pde
from hotgrid.grid.output import Colours, colours_of

from .picture_models import ramp

numbers = arrays(np.float32, (4, 5), elements=st.floats(-100, 100, width=32))


def image(picture: Picture) -> np.ma.MaskedArray:
    [shown] = picture.figure.axes[0].images
    return np.ma.asarray(shown.get_array())


@given(numbers)
def test_limits_hold_nearly_everything(x: np.ndarray):
    colours = colours_of(x)
    assert colours.low < colours.high
    inside = (x >= colours.low) & (x <= colours.high)
    assert inside.all() or (colours.beyond and inside.mean() >= 0.9)
    if colours.kind == "signed":
        assert colours.low == -colours.high
        assert x.min() < 0 < x.max()


@given(numbers)
def test_numbers_that_are_not_finite_do_not_count(x: np.ndarray):
    spoiled = np.concatenate([x.ravel(), [np.nan, np.inf]])
    assert colours_of(spoiled) == colours_of(x)


def test_kinds():
    assert colours_of(np.array([0, 1], np.uint8)) == Colours("states", 0, 1)
    assert colours_of(np.array([False])).kind == "states"
    assert colours_of(np.array([0, 7], np.int16)) == Colours("plain", 0, 7)
    assert colours_of(np.array([-1.0, 0.5])) == Colours("signed", -1, 1)
    assert colours_of(np.array([-0.001, 1.0])).kind == "plain", "an overshoot is not a sign"
    assert colours_of(np.array([np.nan])) == Colours("plain", 0, 1)


def test_a_few_wild_cells_do_not_take_the_range():
    x = np.sin(np.linspace(0, 20, 10_000))
    x[:5] = 12
    colours = colours_of(x)
    assert colours.high == pytest.approx(1, rel=1e-3)
    assert colours.beyond


def test_noise_on_a_constant_is_one_colour():
    colours = colours_of(np.array([1.0, 1.0 + 1e-9]))
    assert (colours.low, colours.high) == pytest.approx((0.5, 1.5))


def test_the_range_of_a_film_grows_at_once_and_shrinks_slowly():
    wide, narrow = Colours("plain", 0, 10), Colours("plain", 0, 1)
    assert narrow.followed(wide) == wide
    after = wide.followed(narrow)
    assert 8 < after.high < 10
    assert wide.suits(after), "a little less needs no new colour bar"
    assert not wide.suits(narrow)
    assert not narrow.suits(wide)
    signed = wide.followed(Colours("signed", -2, 2))
    assert (signed.kind, signed.low) == ("signed", -signed.high)
    for _ in range(100):
        after = after.followed(narrow)
    assert after.high == pytest.approx(1, rel=1e-3)


def test_title_says_model_view_step_and_time():
    sim = ramp()
    sim.run(2000, progress=False)
    texts = [text.get_text() for text in draw(sim).figure.texts]
    assert texts == ["Ramp: signed", "step 2,000   time 1000"]


def test_signed_views_diverge_with_symmetric_limits_and_a_colour_bar():
    picture = draw(ramp(), "signed")
    axes, bar = picture.figure.axes
    [shown] = axes.images
    low, high = shown.get_clim()
    assert low == -high
    assert shown.get_cmap().name == "RdBu_r"
    assert bar.get_ylim() == (low, high)
    plain = draw(ramp(), "u").figure.axes[0].images[0]
    assert plain.get_cmap().name == "inferno"


def test_solid_cells_are_grey_and_do_not_count():
    picture = draw(ramp(), "u")
    mask = np.ma.getmaskarray(image(picture))
    assert mask[:, :4].all()
    assert not mask[:, 4:].any()
    assert picture.figure.axes[0].images[0].get_clim()[0] == pytest.approx(4 / 15 * 4)
    red, green, blue = picture.pixels()[200, 120].tolist()
    assert red == green == blue == round(0.62 * 255)


def test_a_model_may_say_itself_where_it_is_solid():
    class Channel(pde.Heat):
        def solid(self, size: tuple[int, ...]) -> torch.Tensor:
            walls = torch.zeros(size, dtype=torch.bool)
            walls[0] = True
            return walls

    sim = Simulation(Channel(), size=(6, 7), compiled=False, device="cpu")
    mask = np.ma.getmaskarray(image(draw(sim)))
    assert mask[0].all()
    assert not mask[1:].any()


def test_three_dims_show_the_middle_slice():
    sim = Simulation(pde.Heat(rate=0.1), size=(5, 6, 7), compiled=False, device="cpu")
    picture = draw(sim)
    assert np.array_equal(image(picture), sim.state["u"][2])
    assert picture.figure.texts[0].get_text() == "Heat: u, slice 2 of 5"


def test_one_dim_is_a_curve():
    sim = ramp((20,))
    [line] = draw(sim, "u").figure.axes[0].lines
    curve = np.ma.asarray(line.get_ydata())
    assert np.array_equal(curve.filled(-1)[5:], sim.state["u"].numpy()[5:])


def test_of_a_batch_the_first_run_is_shown():
    sim = Simulation(pde.Heat(), size=(6, 7), batch=3, compiled=False, device="cpu")
    assert np.array_equal(image(draw(sim)), sim.state["u"][0])


def test_redrawn_pixels_follow_the_simulation():
    sim = Simulation(pde.Heat(), size=(16, 24), compiled=False, device="cpu")
    picture = Picture(sim)
    before = picture.pixels()
    assert np.array_equal(before, picture.pixels())
    sim.run(40, progress=False)
    picture.redraw()
    after = picture.pixels()
    assert before.shape == after.shape
    assert before.shape[0] % 2 == before.shape[1] % 2 == 0
    assert not np.array_equal(before, after)
    assert np.array_equal(image(picture), sim.state["u"])


@pytest.mark.parametrize("size", [(4, 300), (300, 4), (64, 64), (1, 1)])
def test_any_proportion_fits_a_page(size: tuple[int, int]):
    height, width, _ = draw(ramp(size), "u").pixels().shape
    assert 200 <= height <= 900
    assert 200 <= width <= 1200


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_it_is_written_as_the_suffix_says(suffix: str, tmp_path: Path):
    begins = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}
    path = draw(ramp(), path=tmp_path / "new" / f"u.{suffix}")
    assert path.read_bytes().startswith(begins[suffix])
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_notebook_gets_a_png():
    assert draw(ramp())._repr_png_().startswith(b"\x89PNG")


def test_no_global_figures(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    assert draw(ramp()).pixels().any()


def test_errors_are_reported_and_nothing_is_written(tmp_path: Path):
    with pytest.raises(ArgumentError, match="no view `sined`; did you mean `signed`"):
        draw(ramp(), "sined", tmp_path / "x.png")
    with pytest.raises(ArgumentError, match=r"must end in \.png, .*did you mean `png`"):
        draw(ramp(), path=tmp_path / "x.pgn")
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingPartError, match=r"pip install matplotlib"):
        draw(ramp())


def test_the_lid_of_a_cavity_is_drawn_on_top():
    from hotgrid.grid import lbm

    sim = Simulation(lbm.Cavity(), size=(32, 32), compiled=False)
    sim.run(40, progress=False)
    lid, floor = sim.view("speed")[-1].mean(), sim.view("speed")[0].mean()
    assert lid > 5 * floor
    low, high = Picture(sim, "speed").figure.axes[0].get_ylim()
    assert low < high
    low, high = Picture(Simulation(pde.Heat(), size=(8, 8)), "u").figure.axes[0].get_ylim()
    assert low > high
