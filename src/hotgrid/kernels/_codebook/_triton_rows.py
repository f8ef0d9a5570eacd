"""`rows` on a GPU: a program multiplies a centroid and writes to all rows with its id.

All programs read all ids, a byte per row from the cache; so one launch does it all.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from hotgrid.kernels.tune._triton_guarded import guarded_load, guarded_store
from hotgrid.kernels.tune._triton_launch import TritonLauncher

from ._triton_buffers import faults_of

_WARPS = 8
_BLOCK = 4096  # columns at a time, divided by the vectors; and ids


@triton.jit
def _centroids(
    ids, x, scale, table, y, faults, rows, cols, centroids,
    VECTORS: tl.constexpr, BLOCK: tl.constexpr, IDS: tl.constexpr, CHECK: tl.constexpr,
):  # fmt: skip
    """The products of a centroid: `y` is `[VECTORS, rows]`."""
    own = tl.program_id(0)
    row = own.to(tl.int64)
    sums = ()
    for _ in tl.static_range(VECTORS):
        sums = sums + (tl.zeros([BLOCK], tl.float32),)
    for at in range(0, cols, BLOCK):
        column = at + tl.arange(0, BLOCK)
        here = column < cols
        weight = guarded_load(
            table, row * cols + column, here, 0, (row * 0 + centroids) * cols, faults, 3, CHECK
        ).to(tl.float32)
        more = ()
        for v in tl.static_range(VECTORS):
            number = guarded_load(
                x, v * cols + column, here, 0, VECTORS * cols, faults, 1, CHECK
            )
            more = more + (sums[v] + weight * number.to(tl.float32),)
        sums = more
    factor = guarded_load(scale, own, own >= 0, 0, centroids, faults, 2, CHECK).to(tl.float32)
    totals = ()
    for v in tl.static_range(VECTORS):
        totals = totals + (tl.sum(sums[v], 0) * factor,)
    for at in range(0, rows, IDS):
        place = at + tl.arange(0, IDS)
        here = place < rows
        number = guarded_load(ids, place, here, 0, rows, faults, 0, CHECK).to(tl.int32)
        # The first program writes zeros for ids beyond the last centroid, as in the core.
        mine = here & ((number == own) | ((own == 0) & (number >= centroids)))
        for v in tl.static_range(VECTORS):
            product = tl.where(number == own, totals[v], 0.0)
            guarded_store(y, v * rows + place, product, mine, VECTORS * rows, faults, 4, CHECK)


_LAUNCHER = TritonLauncher(_centroids)


def repeated_rows(
    dtype: torch.dtype, x: Tensor, codes: Tensor, scale: Tensor, table: Tensor, checked: bool
) -> Tensor:
    """The products of centroids with `x`, scattered by the codes: `[vectors, rows]`."""
    (vectors, cols), rows, centroids = x.shape, codes.shape[0], table.shape[0]
    y = torch.empty((vectors, rows), dtype=dtype, device=x.device)
    faults = faults_of(checked, codes, x, scale, table, y)
    block = max(1024, _BLOCK // triton.next_power_of_2(vectors))
    columns = min(block, max(32, triton.next_power_of_2(cols)))
    ids = min(_BLOCK, max(32, triton.next_power_of_2(rows)))
    _LAUNCHER(
        (centroids, 1, 1),
        (codes, x, scale, table, y, y if faults is None else faults.record),
        (rows, cols, centroids),
        (vectors, columns, ids, checked),
        _WARPS,
    )
    if faults is not None:
        faults.expect_none()
    return y
