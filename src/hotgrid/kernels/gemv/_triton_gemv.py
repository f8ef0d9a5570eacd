"""A matrix times one or a few vectors, on a GPU: the matrix is read once, at the memory limit.

A program has a row of the matrix (or a few) and walks along it; sums are kept in fp32, or in
fp64 for fp64. One row to a program is enough to keep an H200 busy from 2,000 rows on; a
matrix with fewer is cut along its columns, and the parts are added in order, so that the
result is the same on every run.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from hotgrid.kernels.tune import Faults
from hotgrid.kernels.tune._triton_guarded import guarded_load, guarded_store
from hotgrid.kernels.tune._triton_launch import ALIGNED, Launcher, current_device

_BUSY_PROGRAMS = 2048
_SHORTEST_PART = 1024
_SHORTEST_STEP = 256
# For elements of so many bytes: the length of a step, and warps.
_BEST = {1: (512, 4), 2: (2048, 4), 4: (4096, 8), 8: (2048, 8)}


@triton.jit
def _times(
    w, x, scales, y, faults, rows, columns, stride, span,
    VECTORS: tl.constexpr, BLOCK: tl.constexpr, EVEN: tl.constexpr, SCALED: tl.constexpr,
    CHECK: tl.constexpr,
):  # fmt: skip
    """Sums of a part of a row with each vector: `y` is `[parts, VECTORS, rows]`."""
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    begin = part * span
    end = tl.minimum(begin + span, columns)
    wide: tl.constexpr = tl.float64 if w.dtype.element_ty == tl.float64 else tl.float32
    read = (row * 0 + rows - 1) * stride + columns
    sums = ()
    for _ in tl.static_range(VECTORS):
        sums = sums + (tl.zeros([BLOCK], wide),)
    for at in range(begin, end, BLOCK):
        column = at + tl.arange(0, BLOCK)
        here = column < end
        if EVEN and not CHECK:
            # Without a mask, and nothing is kept that is read once: 17.9 us become 16.4.
            loaded = tl.load(w + row * stride + column, eviction_policy="evict_first")
        else:
            loaded = guarded_load(w, row * stride + column, here, 0, read, faults, 0, CHECK)
        weight = loaded.to(wide)
        more = ()
        for v in tl.static_range(VECTORS):
            if EVEN and not CHECK:
                number = tl.load(x + v * columns + column)
            else:
                number = guarded_load(
                    x, v * columns + column, here, 0, VECTORS * columns, faults, 1, CHECK
                )
            more = more + (sums[v] + weight * number.to(wide),)
        sums = more
    for v in tl.static_range(VECTORS):
        total = tl.sum(sums[v], 0)
        if SCALED:
            total *= guarded_load(scales, row, row >= 0, 0, rows, faults, 3, CHECK).to(wide)
        to = (row * 0 + part * VECTORS + v) * rows + row
        all = (row * 0 + tl.num_programs(1)) * VECTORS * rows
        guarded_store(y, to, total.to(y.dtype.element_ty), to >= 0, all, faults, 2, CHECK)


_LAUNCHER = Launcher(_times)


def matrix_times_vectors(
    weight: Tensor, x: Tensor, scales: Tensor | None = None, *, faults: Faults | None = None
) -> Tensor:
    """A matrix `[rows, columns]` times vectors `[vectors, columns]`: `[vectors, rows]`.

    The result is of the type of `x`; sums of several parts are added before they are rounded.

    Arguments:
        weight: Numbers of a row lie side by side; rows may be further apart.
        x: Contiguous.
        scales: What each row is multiplied with, `[rows]`, contiguous; for whole numbers.
        faults: Where accesses outside of a buffer are noted: of the matrix, `x`, the sums
            and the scales, in this order.
    """
    plan = _planned(*weight.shape, x.shape[0], weight.element_size())
    y = _sums(plan, weight, x)
    _LAUNCHER(*_launch(plan, weight, x, scales, y, faults))
    return y if plan.parts == 1 else y.sum(0).to(x.dtype)


def product_like(
    weight: Tensor, x: Tensor, scales: Tensor | None, *, alone: bool
) -> Callable[..., Tensor] | None:
    """Return a function that does the same with such tensors, and has everything at hand.

    Arguments:
        weight: As in `matrix_times_vectors`; so are the others.
        x: In later calls it is `[columns]` if `alone`, and then so is the result: `[rows]`.
        scales: None if there will be none.
        alone: Whether a single vector comes without its dimension.
    """
    rows, columns = weight.shape
    plan = _planned(rows, columns, x.shape[0], weight.element_size())
    y = _sums(plan, weight, x)
    launch = _LAUNCHER.of_addresses(*_launch(plan, weight, x, scales, y, None))
    if launch is None or plan.parts > 1:
        return None
    shape, strides = ((rows,), (1,)) if alone else ((len(x), rows), (rows, 1))
    kind, device, empty = x.dtype, x.device, torch.empty_strided
    number = device.index

    def run(weight: Tensor, x: Tensor, scales: Tensor | None = None) -> Tensor:
        y = empty(shape, strides, dtype=kind, device=device)
        w, v, sums = weight.data_ptr(), x.data_ptr(), y.data_ptr()
        given = sums if scales is None else scales.data_ptr()
        if (w | v | sums | given) % ALIGNED or current_device() != number:
            found = matrix_times_vectors(weight, x[None] if alone else x, scales)
            return found[0] if alone else found
        launch(w, v, given, sums, sums)
        return y

    return run


def _sums(plan: "_Plan", weight: Tensor, x: Tensor) -> Tensor:
    if plan.parts == 1:
        return x.new_empty(x.shape[0], weight.shape[0])
    wide = torch.float64 if weight.dtype == torch.float64 else torch.float32
    return x.new_empty((plan.parts, x.shape[0], weight.shape[0]), dtype=wide)


def _launch(
    plan: "_Plan",
    weight: Tensor,
    x: Tensor,
    scales: Tensor | None,
    y: Tensor,
    faults: Faults | None,
) -> tuple[Any, ...]:
    """What the launcher takes."""
    rows, columns = weight.shape
    given = y if scales is None else scales
    noted = y if faults is None else faults.record
    return (
        (rows, plan.parts, 1),
        (weight, x, given, y, noted),
        (rows, columns, weight.stride(0), plan.span),
        (x.shape[0], plan.block, plan.even, scales is not None, faults is not None),
        plan.warps,
    )


class _Plan(NamedTuple):
    """How the work is dealt out.

    Attributes:
        parts: Of a row.
        span: The length of a part.
        block: The length of a step in it.
        warps: Of a program.
        even: Whether all steps are whole.
    """

    parts: int
    span: int
    block: int
    warps: int
    even: bool


@lru_cache(maxsize=4096)
def _planned(rows: int, columns: int, vectors: int, size: int) -> _Plan:
    parts = max(1, min(_BUSY_PROGRAMS // max(rows, 1), columns // _SHORTEST_PART))
    span = triton.cdiv(columns, parts)
    parts = triton.cdiv(columns, span)
    # Chosen by trials on an H200 at 4096 x 4096; sums of several vectors need registers.
    block, warps = _BEST[size]
    block = max(512, block // triton.next_power_of_2(vectors))
    whole = span & -span
    even = columns % span == 0 and whole >= min(_SHORTEST_STEP, block)
    block = min(block, whole) if even else min(block, max(32, triton.next_power_of_2(span)))
    return _Plan(parts, span, block, warps, even)
