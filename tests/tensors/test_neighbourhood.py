import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor
from torch.nn import functional as F

from hotgrid.errors import ArgumentError, DimensionError
from hotgrid.tensors import map_windows, shift, windows
from hotgrid.tensors._boundary import Boundary

from .tensor_strategies import arrays, quick, some_dims

BOUNDARIES = ("periodic", "edge", 1)


def seen(x: np.ndarray, cell: Sequence[int], boundary: Boundary) -> Any:
    """What stands at `cell`, which may lie outside of `x`: the definition itself."""
    inside = []
    for i, n in zip(cell, x.shape, strict=True):
        if boundary == "periodic":
            inside.append(i % n)
        elif boundary == "edge":
            inside.append(min(max(i, 0), n - 1))
        elif 0 <= i < n:
            inside.append(i)
        else:
            return boundary
    return x[tuple(inside)]


class TestShift:
    @quick
    @given(arrays(), st.sampled_from(BOUNDARIES), st.data())
    def test_every_cell_sees_its_neighbour(
        self, x: np.ndarray, boundary: Boundary, data: st.DataObject
    ):
        dims = data.draw(some_dims(x.ndim))
        offset = [data.draw(st.integers(-7, 7)) for _ in dims]
        by_dim = dict(zip([d % x.ndim for d in dims], offset, strict=True))
        expected = np.empty_like(x)
        for cell in np.ndindex(x.shape):
            looked_at = [i + by_dim.get(dim, 0) for dim, i in enumerate(cell)]
            expected[cell] = seen(x, looked_at, boundary)
        result = shift(torch.from_numpy(x), offset, dims, boundary)
        assert result.dtype == torch.from_numpy(x).dtype
        np.testing.assert_array_equal(result.numpy(), expected)

    def test_the_sign_in_one_picture(self):
        x = torch.tensor([[1, 2, 3], [4, 5, 6]])
        assert shift(x, (1, 0))[0, 0] == x[1, 0]
        assert shift(x, (0, 1))[0, 0] == x[0, 1]
        assert torch.equal(shift(x, (1, 2)), torch.roll(x, (-1, -2), (0, 1)))

    def test_an_int_means_the_last_dim_or_each_of_dims(self):
        x = torch.arange(12).reshape(3, 4)
        assert torch.equal(shift(x, 1), shift(x, (0, 1)))
        assert torch.equal(shift(x, 1, dims=(0, 1)), shift(x, (1, 1)))

    @pytest.mark.parametrize("boundary", BOUNDARIES)
    def test_the_result_never_shares_memory_with_the_input(self, boundary: Boundary):
        x = torch.zeros(3, 4)
        shift(x, (0, 0), boundary=boundary).fill_(1)
        assert not x.any()

    @pytest.mark.parametrize("boundary", BOUNDARIES)
    def test_gradient(self, boundary: Boundary):
        x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(lambda x: shift(x, (1, -2), None, boundary) ** 2, x)

    def test_large_ints_survive_as_a_fill(self):
        large = 2**53 + 1
        assert shift(torch.zeros(2, dtype=torch.int64), 1, boundary=large)[1] == large

    def test_errors(self):
        x = torch.zeros(3, 4)
        with pytest.raises(
            ArgumentError, match=r"`boundary` 'perodic' is unknown; use .*; did you mean"
        ):
            shift(x, 1, boundary="perodic")  # pyright: ignore[reportArgumentType]
        with pytest.raises(ArgumentError, match="`boundary` None is unknown; use 'periodic'"):
            shift(x, 1, boundary=None)  # pyright: ignore[reportArgumentType]
        with pytest.raises(ArgumentError, match=r"2 numbers for 1 dims \(0,\)"):
            shift(x, (1, 2), dims=0)
        with pytest.raises(DimensionError, match=r"`offset` \(1, 2, 3\) is for 3 dims"):
            shift(x, (1, 2, 3))
        with pytest.raises(DimensionError, match="no dim `2` in rank 2"):
            shift(x, 1, dims=2)

    @pytest.mark.parametrize(
        ("dtype", "fill"), [(torch.bool, 2), (torch.uint8, -1), (torch.int32, 0.5)]
    )
    def test_a_fill_that_the_dtype_cannot_hold(self, dtype: torch.dtype, fill: float):
        with pytest.raises(
            ArgumentError, match=rf"`boundary` {fill} does not fit into {dtype}"
        ):
            shift(torch.zeros(3).to(dtype), 1, boundary=fill)

    @pytest.mark.parametrize(
        ("dtype", "fill"),
        [
            (torch.float16, 1e6),
            (torch.float32, 10**60),
            (torch.float32, 10**400),
            (torch.float32, Fraction(10**400)),
            (torch.float32, 1j),
            (torch.int8, 1j),
            (torch.int8, float("nan")),
            (torch.complex64, 1e39j),
        ],
    )
    def test_a_fill_beyond_the_range_or_the_kind(self, dtype: torch.dtype, fill: Any):
        with pytest.raises(ArgumentError, match=rf"`boundary` .* does not fit into {dtype}"):
            shift(torch.zeros(3, dtype=dtype), 1, boundary=fill)

    @pytest.mark.parametrize(
        ("dtype", "fill"),
        [
            (torch.float32, np.float32(0.5)),
            (torch.float64, np.float16(0.5)),
            (torch.float16, float("-inf")),
            (torch.float32, Fraction(1, 2)),
            (torch.float32, 2**70),
            (torch.int8, np.int64(-3)),
            (torch.bool, np.bool_(True)),
            (torch.complex64, 1 + 2j),
            (torch.complex128, np.complex64(2j)),
        ],
    )
    def test_every_kind_of_number_is_a_fill(self, dtype: torch.dtype, fill: Any):
        filled = shift(torch.zeros(3, dtype=dtype), 1, boundary=fill)
        assert filled.dtype == dtype
        assert filled.tolist() == [0, 0, fill]

    @pytest.mark.parametrize("boundary", [[1], np.zeros(2), torch.tensor(1.0)])
    def test_an_array_is_no_boundary(self, boundary: Any):
        with pytest.raises(ArgumentError, match=r"`boundary` .* is unknown"):
            shift(torch.zeros(3), 1, boundary=boundary)

    def test_whatever_has_an_index_is_an_offset(self):
        x = torch.arange(12).reshape(3, 4)
        for offset in (np.int64(1), torch.tensor(1)):
            assert torch.equal(shift(x, offset), shift(x, 1))
        assert torch.equal(shift(x, (np.int8(1), 2)), shift(x, (1, 2)))

    @pytest.mark.parametrize("offset", [1.5, None, "1", True, 10**30, 2**62, -(2**62)])
    @pytest.mark.parametrize("boundary", BOUNDARIES)
    def test_an_offset_is_a_whole_number(self, offset: Any, boundary: Boundary):
        for spelled in (offset, [offset]):
            with pytest.raises(ArgumentError, match=f"`offset` {re.escape(repr(offset))} "):
                shift(torch.zeros(3), spelled, boundary=boundary)

    @pytest.mark.parametrize("offset", [2**62 - 1, 1 - 2**62])
    def test_the_largest_offsets(self, offset: int):
        x = torch.arange(3)
        assert torch.equal(shift(x, offset), shift(x, offset % 3))
        assert shift(x, offset, boundary="edge").unique().tolist() == [2 if offset > 0 else 0]

    @pytest.mark.parametrize("x", [[1, 2], np.arange(3)])
    def test_only_tensors_are_shifted(self, x: Any):
        with pytest.raises(ArgumentError, match=r"`x` must be a tensor, got .*as_tensor"):
            shift(x, 1)


class TestWindows:
    @quick
    @given(arrays(), st.data())
    def test_against_numpy(self, x: np.ndarray, data: st.DataObject):
        dims = data.draw(some_dims(x.ndim))
        sizes = [data.draw(st.integers(1, 6)) for _ in dims]
        strides = [data.draw(st.integers(1, 3)) for _ in dims]
        result = windows(torch.from_numpy(x), sizes, strides, dims)
        counts, steps = list(x.shape), [slice(None)] * x.ndim
        for dim, size, stride in zip(dims, sizes, strides, strict=True):
            counts[dim] = max(0, (x.shape[dim] + stride - size) // stride)
            steps[dim] = slice(None, None, stride)
        assert list(result.shape) == [*counts, *sizes]
        if result.numel():
            view = np.lib.stride_tricks.sliding_window_view(x, sizes, dims)[tuple(steps)]
            np.testing.assert_array_equal(result.numpy(), view)

    @pytest.mark.parametrize("size", [(2, 3), (9, 2)])
    def test_it_is_a_view_even_when_no_window_fits(self, size: tuple[int, int]):
        x = torch.arange(30).reshape(5, 6)
        view = windows(x, size)
        assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()

    def test_writing_into_a_window_writes_into_the_grid(self):
        x = torch.zeros(5, 6)
        windows(x, (3, 3))[1, 2] += 1
        assert x.sum() == 9
        assert x[1:4, 2:5].min() == 1

    def test_an_int_counts_for_the_last_dim_or_for_each_of_dims(self):
        x = torch.zeros(7, 8, 9)
        assert windows(x, 3).shape == (7, 8, 7, 3)
        assert windows(x, 3, 2, dims=(0, -1)).shape == (3, 8, 4, 3, 3)

    def test_gradient(self):
        x = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(lambda x: windows(x, (3, 2), (1, 2)) ** 2, x)

    def test_errors(self):
        x = torch.zeros(5, 6)
        with pytest.raises(ArgumentError, match=r"`size` \(3, 0\) must be 1 or more"):
            windows(x, (3, 0))
        with pytest.raises(ArgumentError, match=r"`stride` \(0,\) must be 1 or more"):
            windows(x, 3, 0)
        with pytest.raises(ArgumentError, match=r"`stride` \(1, 1, 1\) has 3 numbers"):
            windows(x, (3, 3), (1, 1, 1))
        with pytest.raises(DimensionError, match=r"`size` \(1, 1, 1\) is for 3 dims"):
            windows(x, (1, 1, 1))
        with pytest.raises(ArgumentError, match="`x` must be a tensor, got ndarray"):
            windows(np.zeros(3), 1)  # pyright: ignore[reportArgumentType]

    @pytest.mark.parametrize("number", [1.5, True, None, "2", 2**63])
    def test_sizes_and_strides_are_whole_numbers(self, number: Any):
        with pytest.raises(ArgumentError, match=f"`size` {number!r} "):
            windows(torch.zeros(5), number)
        with pytest.raises(ArgumentError, match=f"`stride` {number!r} "):
            windows(torch.zeros(5), 2, number)


def window_sum(w: Tensor):
    return w.sum((-2, -1))


class TestMapWindows:
    @quick
    @given(arrays(min_rank=2), st.sampled_from(BOUNDARIES), st.data())
    def test_centred_windows_see_what_the_definition_says(
        self, x: np.ndarray, boundary: Boundary, data: st.DataObject
    ):
        size = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 13)))
        stride = data.draw(st.integers(1, 3))
        result = map_windows(window_sum, torch.from_numpy(x), size, stride, boundary)
        before = [(k - 1) // 2 for k in size]
        counts = [-(-n // stride) for n in x.shape[-2:]]
        expected = np.zeros([*x.shape[:-2], *counts])
        for *batch, i, j in np.ndindex(expected.shape):
            for a, b in np.ndindex(size):
                cell = (i * stride + a - before[0], j * stride + b - before[1])
                expected[*batch, i, j] += seen(x[tuple(batch)], cell, boundary)
        assert result.shape == expected.shape
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("stride", [1, (2, 3)])
    def test_it_is_conv2d_when_the_function_is_a_weighted_sum(
        self, stride: int | tuple[int, int]
    ):
        x = torch.randn(2, 3, 9, 8, dtype=torch.float64)
        weight = torch.randn(4, 3, 3, 2, dtype=torch.float64)

        def mix(w: Tensor):
            return torch.einsum("bchwij,dcij->bdhw", w, weight)

        expected = F.conv2d(x, weight, stride=stride)
        torch.testing.assert_close(map_windows(mix, x, (3, 2), stride), expected)

    def test_it_is_max_pooling_when_the_function_is_a_maximum(self):
        x = torch.randn(2, 3, 9, 8)
        pooled = map_windows(lambda w: w.amax((-2, -1)), x, (3, 2), (3, 2))
        assert torch.equal(pooled, F.max_pool2d(x, (3, 2)))

    def test_bool_in_bool_out_life_moves_a_glider(self):
        def rule(w: Tensor):
            alive = w.sum((-2, -1))
            return (alive == 3) | ((alive == 4) & w[..., 1, 1])

        glider = torch.zeros(8, 8, dtype=torch.bool)
        glider[[0, 1, 2, 2, 2], [1, 2, 0, 1, 2]] = True
        state = glider
        for _ in range(4):
            state = map_windows(rule, state, (3, 3), boundary="periodic")
        assert state.dtype == torch.bool
        assert torch.equal(state, torch.roll(glider, (1, 1), (0, 1)))

    def test_float_in_int_out(self):
        peaks = map_windows(lambda w: w.argmax(-1), torch.tensor([0.0, 2.0, 1.0, 3.0]), 3)
        assert peaks.tolist() == [1, 2]

    @pytest.mark.parametrize("boundary", ["valid", *BOUNDARIES])
    def test_gradient(self, boundary: Boundary):
        x = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(
            lambda x: map_windows(lambda w: w.prod(-1).sum(-1), x, (3, 2), 2, boundary), x
        )

    def test_a_function_that_keeps_the_window_is_reported(self):
        with pytest.raises(ArgumentError) as caught:
            map_windows(torch.neg, torch.zeros(2, 6, 7), (3, 3))
        assert str(caught.value) == (
            "`fn` must return one value per window: a tensor of rank 3 whose shape ends in "
            "(4, 5). It was given (2, 4, 5, 3, 3) and returned (2, 4, 5, 3, 3): reduce the "
            "last 2 dims, which are the window"
        )

    @pytest.mark.parametrize(
        "fn", [lambda w: w, lambda w: w.sum(-1)[None], lambda w: w.sum((0, -1))]
    )
    def test_a_function_keeps_the_rank_even_where_the_last_dims_fit(self, fn: Any):
        with pytest.raises(ArgumentError, match=r"a tensor of rank 2 whose shape ends in \(2,"):
            map_windows(fn, torch.zeros(4, 3), 2)

    def test_a_function_is_a_function(self):
        with pytest.raises(ArgumentError, match="`fn` 3 must be a function"):
            map_windows(3, torch.zeros(3), 2)  # pyright: ignore[reportArgumentType]

    def test_a_function_that_returns_no_tensor_is_reported(self):
        with pytest.raises(ArgumentError, match="returned float"):
            map_windows(lambda w: w.sum().item(), torch.zeros(6, 7), (3, 3))  # pyright: ignore[reportArgumentType]

    def test_other_errors_are_those_of_windows_and_shift(self):
        with pytest.raises(ArgumentError, match="use 'valid', 'periodic', 'edge' or a number"):
            map_windows(window_sum, torch.zeros(5, 5), (3, 3), boundary="same")  # pyright: ignore[reportArgumentType]
        with pytest.raises(DimensionError, match=r"`size` \(3, 3\) is for 2 dims"):
            map_windows(window_sum, torch.zeros(5), (3, 3))
