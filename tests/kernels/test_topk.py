"""What `topk` and `argtopk` promise: order, ties, NaN, gradients, transforms, errors."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor

from hotgrid.config import override
from hotgrid.errors import ArgumentError, DimensionError
from hotgrid.kernels import OPS, argtopk, topk
from hotgrid.kernels._topk._op import compare, excerpt
from hotgrid.kernels.tune._op import fitting

TOPK = OPS["topk"].op

X = torch.tensor([[3.0, 1.0, 3.0, 2.0], [0.0, 5.0, 5.0, 5.0]])


def oracle(line: list[Any], k: int, largest: bool) -> list[int]:
    """Indices by Python's own sort, which is stable: NaN is largest, equals keep order."""

    def rank(i: int) -> tuple[bool, float]:
        nan = math.isnan(line[i])
        up = (nan, 0.0 if nan else line[i])
        return up if not largest else (not nan, 0.0 if nan else -line[i])

    return sorted(range(len(line)), key=rank)[:k]


numbers = st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 2.5])


@given(st.data())
def test_the_reference_is_what_pythons_stable_sort_says(data: st.DataObject):
    line = data.draw(st.lists(numbers, min_size=1, max_size=12))
    k = data.draw(st.integers(1, len(line)))
    largest = data.draw(st.booleans())
    x = torch.tensor(line)
    values, indices = TOPK.reference(x, k, 0, largest, True)
    expected = oracle(line, k, largest)
    assert indices.tolist() == expected
    assert torch.equal(values.isnan(), x[expected].isnan())
    assert torch.equal(values.nan_to_num(9.0), x[expected].nan_to_num(9.0))


@pytest.mark.parametrize("name", TOPK.names)
def test_equal_elements_are_taken_by_lowest_index(name: str):
    candidate = next(each for each in TOPK.candidates if each.name == name)
    x, k = (X, 2) if name != "extremum" else (X, 1)
    for dim in (0, 1):
        arguments = (x, min(k, x.shape[dim]), dim, True, True)
        if fitting([candidate], TOPK.describe(*arguments)):
            with override({"kernels.choose": [f"topk={name}"]}):
                found = topk(*arguments)[1].tolist()
            assert found == TOPK.reference(*arguments)[1].tolist()


def test_values_and_indices():
    values, indices = topk(X, 2)
    assert values.tolist() == [[3, 3], [5, 5]]
    assert indices.tolist() == [[0, 2], [1, 2]]
    assert indices.dtype == torch.int64
    assert argtopk(X, 1, 0).tolist() == [[0, 1, 1, 1]]
    assert argtopk(X, 2, -1, largest=False).tolist() == [[1, 3], [0, 1]]


def test_unsorted_ones_are_the_same_elements():
    x = torch.randn(7, 40)
    found = topk(x, 9, sorted=False)
    assert torch.equal(found[1].sort(-1).values, topk(x, 9)[1].sort(-1).values)
    assert torch.equal(x.gather(-1, found[1]), found[0])


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 5), (2, 0, 4)])
@pytest.mark.parametrize("dim", [0, -1])
def test_no_cells_in_no_cells_out(shape: tuple[int, ...], dim: int):
    x = torch.empty(shape)
    k = min(x.shape[dim], 2)
    expected = torch.topk(x, k, dim)
    values, indices = topk(x, k, dim)
    assert values.shape == indices.shape == expected.values.shape
    assert (values.dtype, indices.dtype) == (x.dtype, torch.int64)


def test_none_and_all():
    x = torch.randn(4, 6)
    assert topk(x, 0, 0)[0].shape == (0, 6)
    values, indices = topk(x, 4, 0)
    assert torch.equal(values, x.sort(0, descending=True).values)
    assert torch.equal(x.gather(0, indices), values)


def test_an_int_like_k_and_dim_are_taken():
    assert argtopk(X, torch.tensor(1), torch.tensor(-1)).tolist() == [[0], [1]]


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        (([1, 2], 1), ArgumentError, "`x` must be a tensor, got list"),
        ((X, 5), ArgumentError, "`k` is 5; expected 0 to 4, the size of dim 1"),
        ((X, -1), ArgumentError, "`k` is -1; expected 0 to 4"),
        ((X, 1.0), ArgumentError, "`k` must be a whole number, got 1.0"),
        ((X, True), ArgumentError, "`k` must be a whole number, got True"),
        ((X, 1, 2), DimensionError, "there is no dim `2` in rank 2"),
        ((X, 1, -3), DimensionError, "there is no dim `-3` in rank 2"),
        ((torch.tensor(1.0), 1), DimensionError, "rank 0 has none"),
        ((X, 1, 0, 1), ArgumentError, "`largest` must be True or False, got 1"),
        ((X, 1, 0, True, None), ArgumentError, "`sorted` must be True or False, got None"),
        ((X.to(torch.complex64), 1), ArgumentError, "`x` is torch.complex64"),
        ((torch.empty(0), 1), ArgumentError, "`k` is 1; expected 0 to 0"),
    ],
)
def test_bad_arguments_are_named(arguments: tuple[Any, ...], kind: type, text: str):
    for function in (topk, argtopk):
        with pytest.raises(kind) as caught:
            function(*arguments)
        assert text in str(caught.value)


def test_gradients_go_to_the_elements_that_were_taken():
    x = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    for function in (topk, torch.ops.hotgrid.topk):
        for dim in (0, 1):
            take = lambda y, f=function, d=dim: f(y, 3, d, True, True)[0]
            assert torch.autograd.gradcheck(take, x)
            assert torch.autograd.gradgradcheck(take, x)
    tied = torch.zeros(4, requires_grad=True)
    (gradient,) = torch.autograd.grad(topk(tied, 2)[0].sum(), tied)
    assert gradient.tolist() == [1, 1, 0, 0]
    assert not argtopk(x, 2).requires_grad


def test_the_operator_keeps_the_rules_of_torch():
    x = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    done = torch.library.opcheck(torch.ops.hotgrid.topk.default, (x, 3, 0, False, True))
    assert set(done.values()) == {"SUCCESS"}


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_vmap_and_function_transforms(dim: int):
    x = torch.randn(3, 4, 6)
    values, indices = torch.vmap(lambda r: topk(r, 2, dim))(x)
    for row, value, index in zip(x, values, indices, strict=True):
        assert torch.equal(value, topk(row, 2, dim)[0])
        assert torch.equal(index, topk(row, 2, dim)[1])
    inner = torch.vmap(lambda r: topk(r, 2, dim)[1], in_dims=2, out_dims=1)(x)
    assert torch.equal(inner[:, 0], topk(x[:, :, 0], 2, dim)[1])
    y = x[0]
    ones = torch.zeros_like(y).scatter(dim, topk(y, 2, dim)[1], 1.0)
    total = lambda z: topk(z, 2, dim)[0].sum()
    assert torch.equal(torch.func.grad(total)(y), ones)
    assert torch.equal(torch.vmap(torch.func.grad(total))(x)[0], ones)
    of_all = torch.func.grad(lambda z: torch.vmap(total)(z).sum())(x)
    assert torch.equal(of_all[0], ones)
    assert torch.func.jvp(total, (y,), (ones,))[1] == ones.sum()


def test_a_fake_tensor_has_the_shape_and_nothing_is_tuned():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        values, indices = topk(torch.empty(4, 9, 2), 3, 1)
    assert values.shape == indices.shape == (4, 3, 2)


@pytest.mark.compiles
def test_one_graph_with_the_same_results():
    torch.compiler.reset()

    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        values, indices = topk(x * 2, x.shape[0] // 2, 0)
        return values.square(), indices

    compiled = torch.compile(function, backend="aot_eager", fullgraph=True, dynamic=True)
    for rows in (6, 9):
        x = torch.randn(rows, 5, requires_grad=True)
        (values, indices), expected = compiled(x), function(x)
        assert torch.equal(values, expected[0])
        assert torch.equal(indices, expected[1])
        (found,) = torch.autograd.grad(values.sum(), x)
        (gradient,) = torch.autograd.grad(expected[0].sum(), x)
        assert torch.equal(found, gradient)
    torch.compiler.reset()


def test_an_excerpt_has_whole_lines():
    x = torch.zeros(1).expand(2**15, 64, 2**10)
    part, k, dim, *_ = excerpt(x, 2, 1, True, True)
    assert part.is_contiguous() == x.is_contiguous()  # else other candidates apply to it
    assert part.shape[1] == 64
    assert (k, dim) == (2, 1)
    assert part.numel() <= 2**24
    assert excerpt(X, 2, 1, True, True)[0] is X


def test_a_comparison_says_what_differs():
    right = TOPK.reference(X, 2, 1, True, True)
    swapped = (right[0], right[1].flip(1))
    ask = lambda got, ordered=True: compare(right, got, X, 2, 1, True, ordered)
    assert ask(right) is None
    assert ask(swapped) == "indices at (0, 0) are 2 and should be 0, 4 of 4 are wrong"
    assert ask(swapped, False) is None
    assert "values at (0, 0)" in (ask((right[0] + 1, right[1])) or "")
    assert "should be torch.int64" in (ask((right[0], right[1].int())) or "")
