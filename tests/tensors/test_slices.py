import itertools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from hotgrid.errors import ArgumentError, DimensionError
from hotgrid.tensors import Slices
from hotgrid.tensors._slices import SliceItem

from .tensor_strategies import arrays, indices, quick, slice_items


@quick
@given(arrays(), st.data())
def test_text_selects_what_numpy_selects(x: np.ndarray, data: st.DataObject):
    index = data.draw(indices(x.shape))
    chosen = Slices(str(Slices(index)))(torch.from_numpy(x))
    np.testing.assert_array_equal(chosen.numpy(), x[index])


@quick
@given(st.lists(slice_items | st.integers(-9, 9) | st.just(...), min_size=1, max_size=4))
def test_the_text_round_trips(items: list[SliceItem]):
    if items.count(...) > 1:
        items = [item for item in items if item is not ...] or [...]
    slices = Slices(tuple(items))
    again = Slices(str(slices))
    assert again == slices
    assert hash(again) == hash(slices)
    assert again.index == tuple(items)


@quick
@given(arrays(max_side=4), st.data())
def test_iteration_walks_the_selected_cells_in_row_major_order(
    x: np.ndarray, data: st.DataObject
):
    slices = Slices(data.draw(indices(x.shape)))
    bound = slices.bound_to(x.shape)
    assert [x[cell] for cell in bound] == list(x[slices.index].flat)
    assert all(len(cell) == x.ndim for cell in bound)
    assert bound.bound_to(x.shape) == bound


def test_the_example_of_the_issue():
    slices = Slices("1:-1, ::2, ..., 3")
    assert slices.index == (slice(1, -1), slice(None, None, 2), ..., 3)
    assert str(slices) == "1:-1, ::2, ..., 3"
    assert repr(slices) == "Slices('1:-1, ::2, ..., 3')"
    assert str(slices.bound_to((5, 6, 7, 8))) == "1:4, 0:6:2, 0:7, 3"
    x = torch.arange(5 * 6 * 7 * 8).reshape(5, 6, 7, 8)
    assert torch.equal(slices(x), x[1:-1, ::2, ..., 3])
    assert torch.equal(x[slices.index], slices(x))


def test_spaces_and_signs_are_free():
    assert Slices("  1 :-1,+2,...") == Slices("1:-1, 2, ...")


def test_closed_slices_are_walked_without_a_shape():
    assert list(Slices("1:4:2, 5")) == [(1, 5), (3, 5)]
    assert list(itertools.islice(Slices(":1000000000"), 2)) == [(0,), (1,)]


@pytest.mark.parametrize("text", ["1:", "-1", ":-1", "-2:5", "...", "0:2, ..."])
def test_open_slices_need_a_shape(text: str):
    with pytest.raises(ArgumentError, match=r"use `\.bound_to\(shape\)` first"):
        list(Slices(text))


def test_a_scalar_has_one_cell():
    bound = Slices("...").bound_to(())
    assert list(bound) == [()]
    assert str(bound) == "..."


def test_slices_are_not_equal_to_other_things():
    assert Slices("1") != (1,)
    assert Slices(Slices("1:2")) == Slices(slice(1, 2))


@pytest.mark.parametrize(
    ("text", "reason", "place"),
    [
        ("", "expected an int, a slice or `...`", 0),
        ("1,, 2", "expected an int, a slice or `...`", 2),
        ("1:2,", "expected an int, a slice or `...`", 4),
        ("1, two, 3", "'two' is not an int", 3),
        ("1:x", "'x' is not an int", 2),
        ("0.5", "'0.5' is not an int", 0),
        ("1_0", "'1_0' is not an int", 0),
        (":, - 1", "'- 1' is not an int", 3),
        ("1:2:3:4", "a slice has at most two colons", 5),
        ("::0", "a step must be 1 or more", 2),
        (f"::{2**62}", "a step must be 1 or more and below 2**62", 2),
        (":, :: -1", "a step must be 1 or more", 6),
        ("..., 1, ...", "`...` may occur only once", 8),
        ("....", "'....' is not an int", 0),
    ],
)
def test_bad_text_is_shown_with_a_caret(text: str, reason: str, place: int):
    with pytest.raises(ArgumentError) as caught:
        Slices(text)
    first, shown, caret = str(caught.value).split("\n")
    assert first.startswith(f"slices `{text}`: {reason}")
    assert shown == "    " + text
    assert caret == " " * (4 + place) + "^"


def test_bad_python_slices():
    with pytest.raises(
        ArgumentError, match=r"`::-1`: a step must be 1 or more.*`\.flip\(dim\)`"
    ):
        Slices(slice(None, None, -1))
    with pytest.raises(ArgumentError, match=r"`\.\.\., \.\.\.`: `\.\.\.` may occur only once"):
        Slices((..., ...))
    stepped = slice(None, None, True)
    for bad in (True, None, 0.5, [1], slice("a"), stepped, torch.tensor(1), 2**63, 10**5000):
        with pytest.raises(ArgumentError, match="is not a slice"):
            Slices(bad)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("text", ["9" * 5000, "1:" + "9" * 19, f"-{2**62}:"])
def test_an_int_that_torch_cannot_hold_is_badly_written(text: str):
    with pytest.raises(ArgumentError, match="the int is too large for torch"):
        Slices(text)


def test_the_largest_ints_select_as_in_python():
    x = torch.arange(3)
    assert Slices(f"-{2**62 - 1}:{2**63 - 1}")(x).tolist() == [0, 1, 2]
    assert Slices(f"::{2**62 - 1}")(x).tolist() == [0]
    assert Slices(f"1::{2**62 - 1}")(torch.ones(3, 5)).shape == (1, 5)
    assert Slices("-" + "0" * 5000 + "2") == Slices(-2)


@pytest.mark.parametrize("shape", [(2.5,), (-1,), 4, None])
def test_slices_are_bound_to_a_sequence_of_sizes(shape: Any):
    with pytest.raises(ArgumentError, match="`shape` "):
        Slices(":").bound_to(shape)


def test_only_tensors_are_sliced():
    with pytest.raises(ArgumentError, match="`x` must be a tensor, got list"):
        Slices("0")([1])  # pyright: ignore[reportArgumentType]


def test_what_does_not_fit_a_shape():
    with pytest.raises(
        DimensionError, match=r"`:, 1:, 0` names 3 dims, but the shape \(4, 5\)"
    ):
        Slices(":, 1:, 0")(torch.zeros(4, 5))
    with pytest.raises(DimensionError, match=r"`\.\.\., -6`: -6 is out of range at dim 1"):
        Slices("..., -6").bound_to((4, 5))
