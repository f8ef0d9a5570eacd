from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from hotgrid.errors import ArgumentError, DimensionError
from hotgrid.tensors import expect_dim, prod_dims

from .tensor_strategies import quick


@quick
@given(st.integers(1, 6), st.data())
def test_expect_dim_is_the_index_into_a_list_of_dims(rank: int, data: st.DataObject):
    dim = data.draw(st.integers(-rank, rank - 1))
    assert expect_dim(rank, dim) == list(range(rank))[dim]
    assert expect_dim(torch.empty([1] * rank), dim) == expect_dim(rank, dim)


@pytest.mark.parametrize("dim", [3, -4, 100])
def test_a_missing_dim_is_named_with_rank_shape_and_range(dim: int):
    with pytest.raises(DimensionError) as caught:
        expect_dim(torch.zeros(4, 5, 6), dim)
    assert str(caught.value) == (
        f"there is no dim `{dim}` in rank 3, of shape (4, 5, 6): use -3 to 2"
    )


@pytest.mark.parametrize("dim", [0, -1])
def test_a_scalar_has_no_dim(dim: int):
    with pytest.raises(DimensionError, match="rank 0 has none"):
        expect_dim(torch.tensor(1.0), dim)


def test_dimension_errors_are_index_errors_and_value_errors():
    with pytest.raises(IndexError):
        expect_dim(2, 2)
    with pytest.raises(ValueError):
        expect_dim(2, 2)


def test_the_same_dim_twice_is_refused_in_either_spelling():
    with pytest.raises(ArgumentError, match=r"`dims` \(1, -1\) names the same dim twice"):
        prod_dims(torch.ones(2, 3), (1, -1))


def test_no_dims_at_all_are_refused_because_torch_takes_them_for_all():
    with pytest.raises(ArgumentError, match="name at least one dim"):
        prod_dims(torch.ones(2, 3), ())


def test_numpy_ints_are_dims():
    assert expect_dim(torch.zeros(4, 5), np.int64(-1)) == 1
    assert expect_dim(np.int64(2), np.int8(-2)) == 0


@pytest.mark.parametrize("dim", [1.0, True, None, "1", 10**30])
def test_a_dim_is_a_whole_number(dim: Any):
    with pytest.raises(ArgumentError, match=f"`dim` {dim!r} "):
        expect_dim(torch.zeros(4, 5), dim)
    with pytest.raises(ArgumentError, match=f"`dims` {dim!r} "):
        prod_dims(torch.zeros(4, 5), dim)


@pytest.mark.parametrize("x", [np.zeros(3), [1, 2], None, 1.5, -1])
def test_a_rank_is_asked_of_a_tensor_or_given(x: Any):
    with pytest.raises(ArgumentError, match=r"`x` must be a tensor or a rank .*as_tensor"):
        expect_dim(x, 0)


def test_an_int_that_python_cannot_print_is_still_refused_clearly():
    with pytest.raises(ArgumentError, match="`dim` <int of 16610 bits> is too large"):
        expect_dim(torch.zeros(3), 10**5000)
