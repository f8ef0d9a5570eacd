"""Four bits a weight on a GPU: `int4`, and `pq` with sixteen levels.

A program processes a few rows, so that `x` is read once for all of them, and decodes their
codes in registers: each thread of a warp holds one level, fetched by shuffles. A matrix of few
rows is also split along its columns; the parts are added in order, so the result is
deterministic.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from hotgrid.kernels.tune._triton_guarded import guarded_load, guarded_store
from hotgrid.kernels.tune._triton_launch import TritonLauncher

from ._triton_buffers import buffer_for, faults_of, load_at

_ROWS = 4
# Groups of 64 columns per step, unrolled steps, and warps. A shuffle needs one byte per thread;
# without shuffles several bytes per thread are read faster.
_LEVELS = (4, 4, 4)
_NUMBERS = (16, 1, 2)
_NUMBERS_OF_MANY = (16, 1, 4)
_BUSY_PROGRAMS = 512
_SHORTEST_PART = 32  # groups


@triton.jit
def _nibbles(
    codes, x, scale, table, y, faults, rows, cols, groups, span,
    VECTORS: tl.constexpr, ROWS: tl.constexpr, GROUPS: tl.constexpr, TURNS: tl.constexpr,
    LEVELS: tl.constexpr, CHECK: tl.constexpr,
):  # fmt: skip
    """Sums of a part of some rows with each vector: `y` is `[parts, VECTORS, rows]`.

    With `LEVELS` the codes name numbers of `table` and rows have a scale; otherwise they
    are numbers plus 8, and groups have one.
    """
    first = tl.program_id(0).to(tl.int64) * ROWS
    part = tl.program_id(1)
    end = tl.minimum((part + 1) * span, groups)
    all_rows = first * 0 + rows
    its_group = tl.arange(0, GROUPS)
    byte = its_group[:, None] * 32 + tl.arange(0, 32)[None, :]
    # Twice: Triton gathers by shuffles only from at least as many numbers as a warp has
    # threads.
    levels = tl.zeros([GROUPS, 32], tl.float32)
    if LEVELS:
        slot = tl.arange(0, 32) % 16
        level = guarded_load(table, slot, slot >= 0, 0, 16, faults, 3, CHECK)
        levels += level.to(tl.float32)[None, :]
    sums = ()
    for _ in tl.static_range(ROWS * VECTORS):
        sums = sums + (tl.zeros([GROUPS, 32], tl.float32),)
    for begin in range(part * span, end, GROUPS * TURNS):
        for turn in tl.static_range(TURNS):
            group = begin + turn * GROUPS
            here = its_group < end - group
            numbers = _halves_of_x(
                x, group, here, cols, faults, VECTORS, GROUPS, 1.0 if LEVELS else 0.0625, CHECK
            )
            more = ()
            for r in tl.static_range(ROWS):
                # Rows beyond the last repeat it and are not written.
                row = tl.minimum(first + r, rows - 1)
                both = load_at(
                    codes, row * groups * 32, group * 32 + byte, here[:, None],
                    all_rows * groups * 32, faults, 0, CHECK,
                ).to(tl.int32)  # fmt: skip
                if LEVELS:
                    low = tl.gather(levels, both & 15, 1)
                    high = tl.gather(levels, both >> 4, 1)
                    for v in tl.static_range(VECTORS):
                        total = sums[r * VECTORS + v] + low * numbers[2 * v]
                        more = more + (total + high * numbers[2 * v + 1],)
                else:
                    low = _number_of(both & 15, 8)
                    high = _number_of(both & 240, 128)
                    factor = guarded_load(
                        scale, row * groups + group + its_group, here, 0, all_rows * groups,
                        faults, 2, CHECK,
                    ).to(tl.float32)[:, None]  # fmt: skip
                    for v in tl.static_range(VECTORS):
                        term = low * numbers[2 * v] + high * numbers[2 * v + 1]
                        more = more + (sums[r * VECTORS + v] + term * factor,)
            sums = more
    for r in tl.static_range(ROWS):
        row = first + r
        own = row < rows
        factor = 1.0
        if LEVELS:
            factor = guarded_load(scale, row, own, 0, rows, faults, 2, CHECK).to(tl.float32)
        for v in tl.static_range(VECTORS):
            total = tl.sum(tl.sum(sums[r * VECTORS + v], 1), 0) * factor
            to = (first * 0 + part * VECTORS + v) * rows + row
            all = (first * 0 + tl.num_programs(1)) * VECTORS * rows
            guarded_store(y, to, total, own, all, faults, 4, CHECK)


@triton.jit
def _number_of(code, middle):
    """A code minus its middle, in f32; faster than a conversion."""
    return (code | 0x4B000000).to(tl.float32, bitcast=True) - (8388608.0 + middle)


@triton.jit
def _halves_of_x(
    x, begin, here, cols, faults,
    VECTORS: tl.constexpr, GROUPS: tl.constexpr, HIGH: tl.constexpr, CHECK: tl.constexpr,
):  # fmt: skip
    """The parts of each vector for the low and the high nibbles, the latter times HIGH."""
    column = begin * 64 + tl.arange(0, GROUPS)[:, None] * 64 + tl.arange(0, 32)[None, :]
    numbers = ()
    for v in tl.static_range(VECTORS):
        low = load_at(
            x, v * cols, column, here[:, None] & (column < cols), VECTORS * cols,
            faults, 1, CHECK,
        ).to(tl.float32)  # fmt: skip
        high = load_at(
            x, v * cols, column + 32, here[:, None] & (column < cols - 32), VECTORS * cols,
            faults, 1, CHECK,
        ).to(tl.float32)  # fmt: skip
        numbers = numbers + (low, high * HIGH)
    return numbers


_LAUNCHER = TritonLauncher(_nibbles)


def nibbles_times_vectors(
    dtype: torch.dtype,
    x: Tensor,
    codes: Tensor,
    scale: Tensor,
    table: Tensor | None,
    checked: bool,
) -> Tensor:
    """Return the products, or the sums of several parts; see `buffer_for`."""
    (vectors, cols), (rows, groups, _) = x.shape, codes.shape
    few = vectors <= 2
    if table is not None:
        (some, turns, warps), at_once = _LEVELS, _ROWS
        turns = turns if few else 1
    elif few:
        (some, turns, warps), at_once = _NUMBERS, _ROWS
    else:
        (some, turns, warps), at_once = _NUMBERS_OF_MANY, 1
    programs = triton.cdiv(rows, at_once)
    parts = max(1, min(_BUSY_PROGRAMS // programs, groups // _SHORTEST_PART))
    y = buffer_for(parts, vectors, rows, dtype, x.device)
    faults = faults_of(checked, codes, x, scale, table, y)
    levels = scale if table is None else table
    _LAUNCHER(
        (programs, parts, 1),
        (codes, x, scale, levels, y, y if faults is None else faults.record),
        (rows, cols, groups, triton.cdiv(groups, parts)),
        (vectors, at_once, some, 1 if checked else turns, table is not None, checked),
        warps,
    )
    if faults is not None:
        faults.expect_none()
    return y
