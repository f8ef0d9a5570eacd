from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from hotgrid.errors import ArgumentError, DimensionError
from hotgrid.tensors import ravel_index

from .tensor_strategies import quick

shapes = st.lists(st.integers(1, 6), min_size=0, max_size=4).map(tuple)


@quick
@given(shapes, st.data())
def test_ints_against_numpy_and_back(shape: tuple[int, ...], data: st.DataObject):
    index = tuple(data.draw(st.integers(-n, n - 1)) for n in shape)
    flat = ravel_index(index, shape)
    positive = tuple(i % n for i, n in zip(index, shape, strict=True))
    assert flat == (np.ravel_multi_index(positive, shape) if shape else 0)
    assert np.unravel_index(flat, shape) == positive


@quick
@given(shapes.filter(len), st.data())
def test_tensors_are_the_ints_at_once_and_the_inverse_of_unravel_index(
    shape: tuple[int, ...], data: st.DataObject
):
    flat = torch.as_tensor(data.draw(st.lists(st.integers(0, int(np.prod(shape)) - 1))))
    index = torch.unravel_index(flat.long(), shape)
    assert torch.equal(ravel_index(index, shape), flat.long())
    from_the_end = [i - n for i, n in zip(index, shape, strict=True)]
    assert torch.equal(ravel_index(from_the_end, shape), flat.long())


def test_tensors_broadcast_and_widen():
    rows, columns = torch.arange(2, dtype=torch.int32)[:, None], torch.arange(3)
    assert torch.equal(ravel_index((rows, columns), (2, 3)), torch.arange(6).reshape(2, 3))
    far = torch.tensor(2**20, dtype=torch.int32)
    assert ravel_index((far, far), (2**21, 2**21)) == 2**41 + 2**20


@pytest.mark.parametrize("outside", [3, -4])
def test_a_tensor_out_of_range_gives_an_index_that_torch_refuses(outside: int):
    flat = ravel_index((torch.tensor([0, outside]), torch.tensor([1, 1])), (3, 4))
    assert flat.tolist() == [1, 12]
    with pytest.raises(IndexError):
        torch.zeros(3, 4).flatten()[flat]


def test_errors():
    with pytest.raises(
        DimensionError, match=r"`index` \(0, 4\): 4 is out of range at dim 1 of"
    ):
        ravel_index((0, 4), (3, 4))
    with pytest.raises(DimensionError, match="-1 is out of range at dim 0"):
        ravel_index((-1,), (0,))
    with pytest.raises(DimensionError, match=r"1 coordinates, but `shape` \(3, 4\) has 2 dims"):
        ravel_index((0,), (3, 4))
    for bad in (torch.zeros(2), torch.zeros(2, dtype=torch.bool)):
        with pytest.raises(ArgumentError, match="coordinates are integers"):
            ravel_index((bad,), (3,))


@pytest.mark.parametrize("coordinate", [1.5, 1.0, True, "1", None])
def test_coordinates_are_whole_numbers(coordinate: Any):
    for first in (1, torch.tensor([1])):
        with pytest.raises(ArgumentError, match=f"`index` {coordinate!r} must be a whole"):
            ravel_index((first, coordinate), (3, 4))


def test_numpy_coordinates_are_ints():
    spellings: list[Any] = [(np.int64(1), -2), np.array([1, 2])]
    for index in spellings:
        assert ravel_index(index, (3, 4)) == 6


@pytest.mark.parametrize("shape", [(3, 4.5), (3, -4), 3, None])
def test_a_shape_is_a_sequence_of_sizes(shape: Any):
    with pytest.raises(ArgumentError, match="`shape` "):
        ravel_index((1, 2), shape)


def test_an_index_is_a_sequence_that_broadcasts():
    with pytest.raises(ArgumentError, match="`index` 3 must be a sequence"):
        ravel_index(3, (3, 4))  # pyright: ignore[reportArgumentType, reportCallIssue]
    two, three = torch.zeros(2, dtype=torch.int64), torch.zeros(3, dtype=torch.int64)
    with pytest.raises(ArgumentError, match=r"at dim 1 has the shape \(3,\), which does not"):
        ravel_index((two, three), (3, 4))
