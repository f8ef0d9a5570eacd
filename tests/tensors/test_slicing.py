from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from hotgrid.errors import ArgumentError, DimensionError
from hotgrid.tensors import Slices, slice_dim, slice_fill

from .tensor_strategies import arrays, indices, quick, slice_items


@quick
@given(arrays(), st.data())
def test_slice_dim_against_numpy(x: np.ndarray, data: st.DataObject):
    dim = data.draw(st.integers(-x.ndim, x.ndim - 1))
    n = x.shape[dim]
    item = data.draw(slice_items | st.integers(-n, n - 1) if n else slice_items)
    expected = np.moveaxis(x, dim, 0)[item]
    if isinstance(item, slice):
        expected = np.moveaxis(expected, 0, dim)
    for spelled in (item, str(Slices(item))):
        np.testing.assert_array_equal(slice_dim(torch.from_numpy(x), dim, spelled), expected)


@quick
@given(arrays(), st.data())
def test_slice_fill_against_numpy(x: np.ndarray, data: st.DataObject):
    index = data.draw(indices(x.shape))
    expected, before = x.copy(), x.copy()
    expected[index] = 1
    for spelled in (index, str(Slices(index)), Slices(index)):
        filled = slice_fill(torch.from_numpy(x), spelled, 1)
        np.testing.assert_array_equal(filled, expected)
    np.testing.assert_array_equal(x, before)


@quick
@given(arrays(min_rank=2, min_side=1), st.data())
def test_slice_fill_with_a_tensor_broadcasts_as_numpy_does(x: np.ndarray, data: st.DataObject):
    index = data.draw(indices(x.shape))
    value = x[index][..., :1] if x[index].ndim else x[index]
    expected = x.copy()
    expected[index] = value
    filled = slice_fill(torch.from_numpy(x), index, torch.as_tensor(value))
    np.testing.assert_array_equal(filled, expected)


def test_slice_dim_is_a_view_and_slice_fill_is_not():
    x = torch.zeros(3, 4)
    slice_fill(x, "...", 1)
    assert not x.any()
    slice_dim(x, 0, "1:").fill_(1)
    assert x.sum() == 8


def test_slice_fill_of_an_expanded_tensor_fills_only_the_region():
    assert slice_fill(torch.zeros(1).expand(3), 0, 1).tolist() == [1, 0, 0]


def test_gradients_reach_both_sides_of_the_region():
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    value = torch.randn(2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, v: slice_fill(x, "1:, ::2", v) ** 2, (x, value))
    assert torch.autograd.gradcheck(lambda x: slice_dim(x, 1, "::2") ** 2, x)


def test_slice_dim_errors():
    x = torch.zeros(3, 4)
    with pytest.raises(ArgumentError, match="`0, 1` must be one slice or int, for dim 1"):
        slice_dim(x, -1, "0, 1")
    with pytest.raises(ArgumentError, match=r"`\.\.\.` must be one slice or int"):
        slice_dim(x, 0, "...")
    with pytest.raises(DimensionError, match="4 is out of range at dim 1"):
        slice_dim(x, 1, 4)
    with pytest.raises(DimensionError, match="no dim `2` in rank 2"):
        slice_dim(x, 2, ":")


def test_slice_fill_errors():
    x = torch.zeros(3, 4, dtype=torch.int32)
    with pytest.raises(ArgumentError, match=r"`value` 0\.5 does not fit into torch\.int32"):
        slice_fill(x, "0", 0.5)
    with pytest.raises(
        ArgumentError, match=r"`value` is torch\.float32 and would lose its kind"
    ):
        slice_fill(x, "0", torch.zeros(4))
    with pytest.raises(ArgumentError, match=r"\(3,\) does not broadcast .* shape \(3, 2\)"):
        slice_fill(x, ":, :2", torch.zeros(3, dtype=torch.int32))
    with pytest.raises(ArgumentError, match=r"\(1, 4\) does not broadcast .* shape \(4,\)"):
        slice_fill(x, "0", torch.zeros(1, 4, dtype=torch.int32))
    with pytest.raises(DimensionError, match="names 3 dims"):
        slice_fill(x, "0, 0, 0", 1)
    for bad in ([1], np.zeros(3)):
        with pytest.raises(ArgumentError, match="`x` must be a tensor"):
            slice_fill(bad, "0", 1)  # pyright: ignore[reportArgumentType]
        with pytest.raises(ArgumentError, match="`x` must be a tensor"):
            slice_dim(bad, 0, "0")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("value", [None, [1, 2], "1", np.zeros(2)])
def test_slice_fill_takes_numbers_and_tensors(value: Any):
    with pytest.raises(ArgumentError, match=r"`value` .* is neither a number nor a tensor"):
        slice_fill(torch.zeros(3), "0", value)


def test_slice_fill_with_numbers_of_every_kind():
    assert slice_fill(torch.zeros(2), "0", np.float32(3)).tolist() == [3, 0]
    assert slice_fill(torch.zeros(2, dtype=torch.complex64), "0", 1j).tolist() == [1j, 0]
    with pytest.raises(ArgumentError, match=r"`value` 1j does not fit into torch\.float32"):
        slice_fill(torch.zeros(2), "0", 1j)


@pytest.mark.parametrize(
    ("dtype", "wider"),
    [
        (torch.int8, torch.int64),
        (torch.int8, torch.uint8),
        (torch.uint8, torch.int8),
        (torch.float16, torch.int32),
        (torch.float16, torch.float32),
        (torch.complex64, torch.complex128),
    ],
)
def test_slice_fill_refuses_a_tensor_of_a_wider_range(dtype: torch.dtype, wider: torch.dtype):
    x = torch.zeros(2, dtype=dtype)
    with pytest.raises(ArgumentError, match=f"{wider} and would lose its range in {dtype}"):
        slice_fill(x, "0", torch.tensor(100, dtype=wider))
    assert slice_fill(x, "0", torch.tensor(100, dtype=wider).to(dtype)).tolist() == [100, 0]
