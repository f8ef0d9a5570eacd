"""The candidate of the C++ core: vectors, threads of its own, every axis read in place."""

from collections.abc import Callable
from functools import partial
from math import prod

import torch
from torch import Tensor

from hotgrid import _native
from hotgrid.kernels._openmp import core
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
    if not _lies_as_lines(x, dim):
        x = x.contiguous()
    shape, numbers = _planned(x, k, dim, largest)
    values, indices = x.new_empty(shape), x.new_empty(shape, dtype=torch.int64)
    if checked:
        outputs = {"values": values, "indices": indices}
        in_red_zones("topk.core", partial(_take, numbers), {"x": x}, outputs)
    else:
        _take(numbers, x, values, indices)
    return values, indices


def _core_ready(
    x: Tensor, k: int, dim: int, largest: bool, sorted: bool
) -> Callable[..., tuple[Tensor, Tensor]] | None:
    """Return a function for tensors of the same type, shape and strides; None if it would copy.

    After a long kernel nothing of Python is left in the caches, so that each step before the
    next one costs several times what it does alone.
    """
    if not _lies_as_lines(x, dim):
        return None
    shape, numbers = _planned(x, k, dim, largest)
    strides = torch.empty(shape, device="meta").stride()
    kind, kind_number, number, here = x.dtype, _TYPES[x.dtype], torch.int64, x.device
    empty, threads, select = torch.empty_strided, torch.get_num_threads, core().topk

    def run(x: Tensor, *settings: object) -> tuple[Tensor, Tensor]:
        values = empty(shape, strides, dtype=kind, device=here)
        indices = empty(shape, strides, dtype=number, device=here)
        pointers = (x.data_ptr(), values.data_ptr(), indices.data_ptr())
        select(*pointers, kind_number, *numbers, threads())
        return values, indices

    return run


def _planned(
    x: Tensor, k: int, dim: int, largest: bool
) -> tuple[list[int], tuple[int, int, int, int, int, int, bool]]:
    """The shape of results, and the arguments of the core besides memory, type and threads."""
    shape = list(x.shape)
    n, inner = shape[dim], prod(shape[dim + 1 :])
    outer_step, step = n * inner, inner
    if not x.is_contiguous():
        outer_step, step = x.stride(dim - 1) if dim else 0, x.stride(dim)
    shape[dim] = k
    return shape, (prod(shape[:dim]), n, inner, k, outer_step, step, largest)


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
    if x.is_contiguous():
        return True
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
    ready=_core_ready,
)
