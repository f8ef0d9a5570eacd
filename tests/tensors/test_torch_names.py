"""What docs/reference/tensors.md says about torch's own functions."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from .tensor_strategies import arrays, quick, some_dims


@quick
@given(arrays(min_side=1), st.booleans(), st.data())
def test_reductions_over_several_dims(x: np.ndarray, keepdim: bool, data: st.DataObject):
    dims = data.draw(some_dims(x.ndim))
    tensor = torch.from_numpy(x)
    sums = tensor.sum(dims, keepdim=keepdim)
    np.testing.assert_allclose(sums, x.sum(dims, keepdims=keepdim), atol=1e-12)
    np.testing.assert_array_equal(
        tensor.amax(dims, keepdim=keepdim), x.max(dims, keepdims=keepdim)
    )
    np.testing.assert_array_equal(
        tensor.amin(dims, keepdim=keepdim), x.min(dims, keepdims=keepdim)
    )
    if x.dtype == np.float64:
        means = tensor.mean(dims, keepdim=keepdim)
        np.testing.assert_allclose(means, x.mean(dims, keepdims=keepdim), atol=1e-12)
        largest = tensor.abs().amax(dims, keepdim=keepdim)
        np.testing.assert_array_equal(largest, np.abs(x).max(dims, keepdims=keepdim))


def test_an_empty_tuple_of_dims_means_all_of_them():
    assert torch.ones(2, 3).sum(()) == 6


@pytest.mark.parametrize("order", [1, 2, 3, math.inf, -math.inf])
def test_the_gradient_of_a_norm_is_zero_at_zero(order: float):
    x = torch.zeros(2, 3, requires_grad=True)
    torch.linalg.vector_norm(x, order, dim=-1, keepdim=True).sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, torch.zeros(2, 3))


def test_the_written_out_norm_has_no_gradient_at_zero():
    x = torch.zeros(3, requires_grad=True)
    x.square().sum().sqrt().backward()
    assert x.grad is not None
    assert x.grad.isnan().all()


def test_ord_zero_counts_the_cells_that_are_not_zero():
    assert torch.linalg.vector_norm(torch.tensor([0.0, 2.0, 3.0]), 0) == 2


def test_xor_of_bools():
    a, b = torch.tensor([0, 0, 1, 1]).bool(), torch.tensor([0, 1, 0, 1]).bool()
    assert torch.equal(torch.logical_xor(a, b), a ^ b)
    assert (a ^ b).tolist() == [False, True, True, False]


def test_normalize_leaves_zero_alone():
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    unit = torch.nn.functional.normalize(x, dim=-1)
    torch.testing.assert_close(unit, torch.tensor([[0.6, 0.8], [0.0, 0.0]]))
