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
