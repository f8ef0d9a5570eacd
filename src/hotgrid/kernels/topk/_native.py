"""The candidate of the C++ core: vectors, threads of its own, every axis read as it lies."""

from functools import partial
from math import prod

import torch
from torch import Tensor

from hotgrid import _native
from hotgrid.kernels._team import core
from hotgrid.kernels.tune import NATIVE, Call, Candidate, in_red_zones

# The numbers of `Type` in native/kernels/topk.hpp; a bool is a byte.
_TYPES = {
    torch.float32: 0,
    torch.float64: 1,
    torch.float16: 2,
    torch.bfloat16: 3,
    torch.int8: 4,
    torch.int16: 5,
    torch.int32: 6,
    torch.int64: 7,
    torch.uint8: 8,
    torch.bool: 8,
}
_NAMES = frozenset(str(each).removeprefix("torch.") for each in _TYPES)
_LONGEST = 2**32 - 1


def _core_topk(
    x: Tensor, k: int, dim: int, largest: bool, sorted: bool, checked: bool = False
) -> tuple[Tensor, Tensor]:
    shape = list(x.shape)
    n, inner = shape[dim], prod(shape[dim + 1 :])
    outer_step, step = n * inner, inner
    if not x.is_contiguous():
        if _lies_as_lines(x, dim):
            outer_step, step = x.stride(dim - 1) if dim else 0, x.stride(dim)
        else:
            x = x.contiguous()
    shape[dim] = k
    values, indices = x.new_empty(shape), x.new_empty(shape, dtype=torch.int64)
    numbers = (prod(shape[:dim]), n, inner, k, outer_step, step, largest)
    if checked:
        outputs = {"values": values, "indices": indices}
        in_red_zones("topk.core", partial(_take, numbers), {"x": x}, outputs)
    else:
        _take(numbers, x, values, indices)
    return values, indices


def _take(numbers: tuple[int, ...], x: Tensor, values: Tensor, indices: Tensor) -> None:
    core().topk(
        x.data_ptr(),
        values.data_ptr(),
        indices.data_ptr(),
        _TYPES[x.dtype],
        *numbers,
        torch.get_num_threads(),
    )


def _lies_as_lines(x: Tensor, dim: int) -> bool:
    """Whether `x` is `[outer, n, inner]` with a step for each of the first two."""
    sizes, steps = x.shape, x.stride()
    expected = 1
    for i in range(x.ndim - 1, dim, -1):
        if sizes[i] != 1 and steps[i] != expected:
            return False
        expected *= sizes[i]
    return all(steps[i] == steps[i + 1] * sizes[i + 1] for i in range(dim - 1))


def _applies(call: Call) -> bool:
    return (
        _native.available()
        and call.device.type == "cpu"
        and call.dtype in _NAMES
        and call.sizes["n"] <= _LONGEST
    )


CORE = Candidate(
    name="core",
    function=_core_topk,
    applies=_applies,
    group=NATIVE,
    checked=partial(_core_topk, checked=True),
)
