"""`pq` of sub-vectors on a GPU: products of `x` with all codes once, then looked up.

A program processes a few blocks of 32 rows and a part of the columns. For some sub-vectors at a
time it multiplies their piece of `x` with all 16 codes of a book, one in each thread of half a
warp; the products that the codes select are fetched by shuffles and added. Parts are added in
order, so the result is deterministic.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from hotgrid.kernels.tune._triton_guarded import guarded_load, guarded_store
from hotgrid.kernels.tune._triton_launch import TritonLauncher

from ._triton_buffers import buffer_for, faults_of, load_at

# Blocks, sub-vectors per step, unrolled steps, and warps. A shuffle needs one byte per thread,
# so there are twice as many sub-vectors as warps.
_LONG = (4, 8, 4, 4)
_SHORT = (1, 16, 8, 8)
_LONG_OF_MANY = (2, 8, 1, 4)
_SHORT_OF_MANY = (1, 16, 1, 8)
_LONG_ROW = 1024  # sub-vectors
_BUSY_PROGRAMS = 1024
_SHORTEST_PART = 128


@triton.jit
def _subvectors(
    codes, x, scale, table, y, faults, rows, cols, pieces, tables, books, span,
    VECTORS: tl.constexpr, BLOCKS: tl.constexpr, WIDTH: tl.constexpr, TABLES: tl.constexpr,
    TURNS: tl.constexpr, CHECK: tl.constexpr,
):  # fmt: skip
    """Sums of a part of some blocks with each vector: `y` is `[parts, VECTORS, rows]`.

    `codes` is `[blocks, tables, 16]`; `pieces` is how many sub-vectors a row has.
    """
    first = tl.program_id(0).to(tl.int64) * BLOCKS
    part = tl.program_id(1)
    end = tl.minimum((part + 1) * span, pieces)
    blocks = (first * 0 + rows + 31) // 32
    slot = tl.arange(0, 16)
    its_piece = tl.arange(0, TABLES)
    byte = its_piece[:, None] * 16 + slot[None, :]
    sums = ()
    for _ in tl.static_range(BLOCKS * VECTORS * 2):
        sums = sums + (tl.zeros([TABLES, 16], tl.float32),)
    for book in range(books):
        entries = ()
        for j in tl.static_range(WIDTH):
            entry = guarded_load(
                table, (book * WIDTH + j) * 16 + slot, slot >= 0, 0, books * WIDTH * 16,
                faults, 3, CHECK,
            )  # fmt: skip
            entries = entries + (entry.to(tl.float32)[None, :],)
        for begin in range(part * span, end, TABLES * TURNS):
            for turn in tl.static_range(TURNS):
                piece = begin + turn * TABLES
                here = its_piece < end - piece
                products = ()
                for v in tl.static_range(VECTORS):
                    product = tl.zeros([TABLES, 16], tl.float32)
                    for j in tl.static_range(WIDTH):
                        number = load_at(
                            x, v * cols + j, (piece + its_piece) * WIDTH, here, VECTORS * cols,
                            faults, 1, CHECK,
                        )  # fmt: skip
                        product += number.to(tl.float32)[:, None] * entries[j]
                    products = products + (product,)
                more = ()
                for b in tl.static_range(BLOCKS):
                    # Blocks beyond the last repeat it and are not written.
                    line = tl.minimum(first + b, blocks - 1) * tables + book * pieces
                    both = load_at(
                        codes, line * 16, piece * 16 + byte, here[:, None],
                        blocks * tables * 16, faults, 0, CHECK,
                    ).to(tl.int32)  # fmt: skip
                    for v in tl.static_range(VECTORS):
                        low = tl.gather(products[v], both & 15, 1)
                        high = tl.gather(products[v], both >> 4, 1)
                        more = more + (
                            sums[(b * VECTORS + v) * 2] + low,
                            sums[(b * VECTORS + v) * 2 + 1] + high,
                        )
                sums = more
    for b in tl.static_range(BLOCKS):
        for half in tl.static_range(2):
            row = (first + b) * 32 + half * 16 + slot
            own = row < rows
            factor = guarded_load(scale, row, own, 0, rows, faults, 2, CHECK).to(tl.float32)
            for v in tl.static_range(VECTORS):
                total = tl.sum(sums[(b * VECTORS + v) * 2 + half], 0) * factor
                to = (first * 0 + part * VECTORS + v) * rows + row
                all = (first * 0 + tl.num_programs(1)) * VECTORS * rows
                guarded_store(y, to, total, own, all, faults, 4, CHECK)


_LAUNCHER = TritonLauncher(_subvectors)


def subvectors_times_vectors(
    dtype: torch.dtype, x: Tensor, codes: Tensor, scale: Tensor, table: Tensor, checked: bool
) -> Tensor:
    """Return the products, or the sums of several parts; see `buffer_for`."""
    (vectors, cols), (blocks, tables, _) = x.shape, codes.shape
    (books, width, _), rows = table.shape, scale.shape[0]
    pieces = cols // width
    # One program computes a short row, so one launch suffices.
    if pieces >= _LONG_ROW:
        at_once, some, turns, warps = _LONG if vectors <= 2 else _LONG_OF_MANY
        programs = triton.cdiv(blocks, at_once)
        parts = max(1, min(_BUSY_PROGRAMS // programs, pieces // _SHORTEST_PART))
    else:
        at_once, some, turns, warps = _SHORT if vectors <= 2 else _SHORT_OF_MANY
        programs, parts = triton.cdiv(blocks, at_once), 1
    y = buffer_for(parts, vectors, rows, dtype, x.device)
    faults = faults_of(checked, codes, x, scale, table, y)
    _LAUNCHER(
        (programs, parts, 1),
        (codes, x, scale, table, y, y if faults is None else faults.record),
        (rows, cols, pieces, tables, books, triton.cdiv(pieces, parts)),
        (vectors, at_once, width, some, 1 if checked else turns, checked),
        warps,
    )
    if faults is not None:
        faults.expect_none()
    return y
