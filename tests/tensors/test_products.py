import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from hotgrid.errors import ArgumentError, DimensionError
from hotgrid.tensors import meshgrid_stack, outer_dim, prod_dims

from .tensor_strategies import arrays, filled, quick, some_dims


@quick
@given(arrays(), st.data())
def test_outer_dim_against_numpy(x: np.ndarray, data: st.DataObject):
    dim = data.draw(st.integers(0, x.ndim - 1))
    shape = list(x.shape)
    shape[dim] = data.draw(st.integers(0, 4))
    y = data.draw(filled(shape))
    result = outer_dim(torch.from_numpy(x), torch.from_numpy(y), dim)
    assert torch.equal(
        result, outer_dim(torch.from_numpy(x), torch.from_numpy(y), dim - x.ndim)
    )
    a, b = np.moveaxis(x, dim, -1), np.moveaxis(y, dim, -1)
    expected = np.moveaxis(a[..., :, None] * b[..., None, :], (-2, -1), (dim, dim + 1))
    assert result.dtype == torch.from_numpy(expected).dtype
    np.testing.assert_array_equal(result, expected)


def test_outer_dim_broadcasts_the_batch():
    assert outer_dim(torch.ones(5, 1, 2), torch.ones(1, 4, 3)).shape == (5, 4, 2, 3)


def test_outer_dim_errors():
    with pytest.raises(ArgumentError, match=r"`x` \(2, 3\) and `y` \(3,\) must have the same"):
        outer_dim(torch.ones(2, 3), torch.ones(3))
    with pytest.raises(ArgumentError, match="everywhere but at dim 1"):
        outer_dim(torch.ones(2, 3), torch.ones(4, 3))
    with pytest.raises(ArgumentError, match="`y` must be a tensor, got list"):
        outer_dim(torch.ones(2), [1, 2])  # pyright: ignore[reportArgumentType]
    with pytest.raises(DimensionError):
        outer_dim(torch.ones(2), torch.ones(2), 1)


@quick
@given(arrays(max_side=3), st.booleans(), st.data())
def test_prod_dims_against_numpy(x: np.ndarray, keepdim: bool, data: st.DataObject):
    dims = data.draw(some_dims(x.ndim))
    result = prod_dims(torch.from_numpy(x), dims, keepdim)
    expected = np.prod(x, axis=dims, keepdims=keepdim)
    assert result.dtype == torch.as_tensor(expected).dtype
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_prod_dims_of_one_dim_is_prod():
    x = torch.randn(3, 4)
    assert torch.equal(prod_dims(x, 1), x.prod(1))


@quick
@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.sampled_from(["i8", "f4", "?"]))
def test_meshgrid_stack_against_numpy(sizes: list[int], dtype: str):
    axes = [np.arange(n).astype(dtype) for n in sizes]
    expected = np.stack(np.meshgrid(*axes, indexing="ij"))
    tensors = [torch.from_numpy(axis) for axis in axes]
    np.testing.assert_array_equal(meshgrid_stack(*tensors), expected)
    last = meshgrid_stack(*tensors, dim=-1)
    np.testing.assert_array_equal(last, np.moveaxis(expected, 0, -1))
    for cell in np.ndindex(*sizes):
        assert tuple(last[cell]) == tuple(axis[i] for axis, i in zip(axes, cell, strict=True))


def test_meshgrid_stack_errors():
    with pytest.raises(ArgumentError, match="at least one axis"):
        meshgrid_stack()
    with pytest.raises(ArgumentError, match=r"axis 1 must be 1-D; its shape is \(2, 2\)"):
        meshgrid_stack(torch.zeros(2), torch.zeros(2, 2))
    with pytest.raises(
        ArgumentError, match=r"axis 1 is torch\.int64 on cpu, axis 0 is torch\.fl"
    ):
        meshgrid_stack(torch.zeros(2), torch.arange(2))
    with pytest.raises(ArgumentError, match="axis 1 must be a tensor, got list"):
        meshgrid_stack(torch.zeros(2), [1, 2])  # pyright: ignore[reportArgumentType]
    with pytest.raises(DimensionError, match="no dim `3` in rank 3"):
        meshgrid_stack(torch.zeros(2), torch.zeros(2), dim=3)


def test_gradients():
    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    y = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(outer_dim, (x, y))
    assert torch.autograd.gradcheck(lambda x: meshgrid_stack(x[0], x[1]) ** 2, x)


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_the_gradient_of_a_product_is_right_where_cells_are_zero(zeros: int):
    x = torch.randn(2, 3, 2, dtype=torch.float64)
    x[0, 0, :zeros] = 0
    assert torch.autograd.gradcheck(lambda x: prod_dims(x, (0, 2)), x.requires_grad_())
