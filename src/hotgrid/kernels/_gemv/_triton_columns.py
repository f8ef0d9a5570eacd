"""A matrix times a few vectors on a GPU, contiguous columns: a program has a few rows.

The rows fill a line of memory, and steps are long enough to keep memory busy, so only matrices
of few rows are split into parts whose sums are added afterwards. Sums are kept in fp32, or in
fp64 for fp64.
"""

import triton
import triton.language as tl

from hotgrid.kernels.tune._triton_guarded import guarded_load, guarded_store


@triton.jit
def down_columns(
    w, x, scales, y, faults, rows, columns, stride, span,
    VECTORS: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr, EVEN: tl.constexpr,
    SCALED: tl.constexpr, CHECK: tl.constexpr,
):  # fmt: skip
    """Sums of a part of some rows with each vector: `y` is `[parts, VECTORS, rows]`."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    part = tl.program_id(1)
    begin = part * span
    end = tl.minimum(begin + span, columns)
    wide: tl.constexpr = tl.float64 if w.dtype.element_ty == tl.float64 else tl.float32
    far = (part * 0 + stride).to(tl.int64)
    read = (far * 0 + columns - 1) * far + rows
    step = tl.arange(0, BLOCK)
    places = step[:, None] * far + row[None, :]
    sums = ()
    for _ in tl.static_range(VECTORS):
        sums = sums + (tl.zeros([BLOCK, ROWS], wide),)
    for at in range(begin, end, BLOCK):
        column = at + step
        going = column < end
        here = going[:, None] & (row < rows)[None, :]
        if EVEN and not CHECK:
            loaded = tl.load(w + at * far + places, eviction_policy="evict_first")
        else:
            loaded = guarded_load(w, at * far + places, here, 0, read, faults, 0, CHECK)
        weight = loaded.to(wide)
        more = ()
        for v in tl.static_range(VECTORS):
            if EVEN and not CHECK:
                number = tl.load(x + v * columns + column)
            else:
                number = guarded_load(
                    x, v * columns + column, going, 0, VECTORS * columns, faults, 1, CHECK
                )
            more = more + (sums[v] + weight * number.to(wide)[:, None],)
        sums = more
    for v in tl.static_range(VECTORS):
        total = tl.sum(sums[v], 0)
        if SCALED:
            total *= guarded_load(scales, row, row < rows, 0, rows, faults, 3, CHECK).to(wide)
        to = (part.to(tl.int64) * VECTORS + v) * rows + row
        all = (far * 0 + tl.num_programs(1)) * VECTORS * rows
        guarded_store(y, to, total.to(y.dtype.element_ty), row < rows, all, faults, 2, CHECK)
