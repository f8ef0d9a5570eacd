"""A matrix times one or a few vectors, on a GPU: the matrix is read once, at the memory limit.

A program has one row of the matrix, or a few where columns are contiguous. One row per program
keeps an H200 busy from 2,000 rows on; a matrix with fewer is split along its columns, and the
parts are added in order, so the result is deterministic.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from hotgrid.kernels.tune import Faults
from hotgrid.kernels.tune._triton_launch import ALIGNED, TritonLauncher
from hotgrid.tensors._torch_private import current_cuda_device

from ._native import lies_in_rows
from ._triton_columns import down_columns
from ._triton_rows import along_rows

_BUSY_PROGRAMS = 2048
_SHORTEST_PART = 1024
_SHORTEST_STEP = 256
# By the bytes of an element: the length of a step, and warps.
_BEST = {1: (512, 4), 2: (512, 4), 4: (4096, 8), 8: (512, 8)}

# Down columns: all programs should run at once, on as many processors, and each step has enough
# numbers to keep memory busy. By the bytes of an element: these numbers, and warps.
_PROCESSORS = 132
_MOST_NUMBERS = {1: (32768, 16), 2: (32768, 16), 4: (16384, 8), 8: (4096, 8)}

_LAUNCHERS = {"rows": TritonLauncher(along_rows), "columns": TritonLauncher(down_columns)}


def matrix_times_vectors(
    weight: Tensor, x: Tensor, scales: Tensor | None = None, *, faults: Faults | None = None
) -> Tensor:
    """A matrix `[rows, columns]` times vectors `[vectors, columns]`: `[vectors, rows]`.

    The result is of the type of `x`; sums of several parts are added before they are rounded.

    Arguments:
        weight: Numbers of a row lie side by side, or else those of a column; rows or columns
            may be further apart.
        x: Contiguous.
        scales: What each row is multiplied with, `[rows]`, contiguous; for whole numbers.
        faults: Where accesses outside of a buffer are noted: of the matrix, `x`, the sums
            and the scales, in this order.
    """
    plan = _plan_of(weight, x)
    y = _sums(plan, weight, x)
    plan.launcher(*_launch(plan, weight, x, scales, y, faults))
    return y if plan.parts == 1 else y.sum(0).to(x.dtype)


def product_like(
    weight: Tensor, x: Tensor, scales: Tensor | None
) -> Callable[..., Tensor] | None:
    """Return a function that does the same for such tensors, with everything precomputed.

    Arguments:
        weight: As in `matrix_times_vectors`; so are the others.
        x: As in later calls.
        scales: As in later calls, or None.
    """
    rows, plan = weight.shape[0], _plan_of(weight, x)
    y = _sums(plan, weight, x)
    launch = plan.launcher.of_addresses(*_launch(plan, weight, x, scales, y, None))
    if launch is None or plan.parts > 1:
        return None
    shape, strides = (len(x), rows), (rows, 1)
    kind, device, empty = x.dtype, x.device, torch.empty_strided
    number = device.index

    def run(weight: Tensor, x: Tensor, scales: Tensor | None = None) -> Tensor:
        y = empty(shape, strides, dtype=kind, device=device)
        w, v, sums = weight.data_ptr(), x.data_ptr(), y.data_ptr()
        given = sums if scales is None else scales.data_ptr()
        if (w | v | sums | given) % ALIGNED or current_cuda_device() != number:
            return matrix_times_vectors(weight, x, scales)
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
    """The arguments of the launcher."""
    rows, columns = weight.shape
    given = y if scales is None else scales
    noted = y if faults is None else faults.record
    along = plan.rows == 1
    shape = (plan.block,) if along else (plan.block, plan.rows)
    return (
        (triton.cdiv(rows, plan.rows), plan.parts, 1),
        (weight, x, given, y, noted),
        (rows, columns, weight.stride(0 if along else 1), plan.span),
        (x.shape[0], *shape, plan.even, scales is not None, faults is not None),
        plan.warps,
    )


class _Plan(NamedTuple):
    """How the work is divided.

    Attributes:
        rows: Rows of a program; more than one where columns are contiguous.
        parts: Into how many parts a row is split.
        span: The length of a part.
        block: The length of a step in it.
        warps: Warps of a program.
        even: Whether all steps are whole.
    """

    rows: int
    parts: int
    span: int
    block: int
    warps: int
    even: bool

    @property
    def launcher(self) -> TritonLauncher:
        return _LAUNCHERS["rows" if self.rows == 1 else "columns"]


def _plan_of(weight: Tensor, x: Tensor) -> _Plan:
    planned = _along_rows if lies_in_rows(weight) else _down_columns
    return planned(*weight.shape, x.shape[0], weight.element_size())


@lru_cache(maxsize=4096)
def _along_rows(rows: int, columns: int, vectors: int, size: int) -> _Plan:
    parts, span = _cut(columns, _BUSY_PROGRAMS // max(rows, 1))
    # Chosen by trials on an H200 at 4096 x 4096; sums of several vectors need registers.
    block, warps = _BEST[size]
    block = max(512, block // triton.next_power_of_2(vectors))
    whole = span & -span
    even = columns % span == 0 and whole >= min(_SHORTEST_STEP, block)
    block = min(block, whole) if even else min(block, max(32, triton.next_power_of_2(span)))
    return _Plan(1, parts, span, block, warps, even)


@lru_cache(maxsize=4096)
def _down_columns(rows: int, columns: int, vectors: int, size: int) -> _Plan:
    # Chosen by trials on an H200 with 1,024 to 14,336 rows: 16 to 64 of them to a program.
    numbers, warps = _MOST_NUMBERS[size]
    if size <= 2 and rows > 32 * _PROCESSORS:
        together = 64
    else:
        together = 16 if size == 8 or rows <= 16 * _PROCESSORS else 32
    programs = triton.cdiv(rows, together)
    if programs > _PROCESSORS and size != 8:
        numbers, warps = numbers // 2, 8
    if vectors > 1:
        numbers, warps = (8192 if size == 8 else 32768) // triton.next_power_of_2(vectors), 16
    parts, span = _cut(columns, _PROCESSORS // max(programs, 1))
    block = min(numbers // together, 1024)
    whole = span & -span
    even = rows % together == 0 and columns % span == 0 and whole >= min(64, block)
    block = min(block, whole if even else max(16, triton.next_power_of_2(span)))
    return _Plan(together, parts, span, block, warps, even)


def _cut(columns: int, wanted: int) -> tuple[int, int]:
    """The number and the length of parts."""
    parts = max(1, min(wanted, columns // _SHORTEST_PART))
    span = triton.cdiv(columns, parts)
    return triton.cdiv(columns, span), span
