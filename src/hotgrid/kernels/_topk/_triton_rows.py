"""Top-k along the last axis, on a GPU.

A warp goes through a row in parts. Of the largest at each place of a part the k-th is a bound
that few numbers reach; a second pass, from the cache, collects those, and the best are taken
from them one by one.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from hotgrid.kernels.tune import Faults
from hotgrid.kernels.tune._triton_guarded import guarded_load, guarded_store
from hotgrid.kernels.tune._triton_launch import TritonLauncher

from ._triton_keys import empty_like, key_of

# How many numbers that reach the bound are collected; where there are more, as in a row of
# equals, the best are looked for one by one in the whole row.
_COLLECTED = 64
# Below this many rows, one warp per row does not fill a GPU.
_MANY_ROWS = 2048
_FAR = tl.constexpr(0x7FFFFFFF)


@triton.jit
def _part(x, start, begin, n, all, faults, LARGEST: tl.constexpr, BLOCK: tl.constexpr,
          CHECK: tl.constexpr):  # fmt: skip
    """Keys of a part of a row, and their places; beyond its end the mark of an empty place."""
    place = begin + tl.arange(0, BLOCK)
    number = guarded_load(x, start + place, place < n, 0, all, faults, 0, CHECK)
    key = key_of(number, LARGEST)
    return tl.where(place < n, key, empty_like(key)), place


@triton.jit
def _taken(key, place, K: tl.constexpr, WIDTH: tl.constexpr):
    """The places of the k best, in order, in the first k of `WIDTH`; of equals the first."""
    slot = tl.arange(0, WIDTH)
    found = tl.full([WIDTH], 0, tl.int32)
    for j in tl.static_range(K):
        top = tl.max(key)
        where = tl.min(tl.where(key == top, place, _FAR))
        found = tl.where(slot == j, where, found)
        taken = place == where
        key = tl.where(taken, empty_like(key), key)
        place = tl.where(taken, _FAR, place)
    return found


@triton.jit
def _one_by_one(x, start, n, all, faults, K: tl.constexpr, LARGEST: tl.constexpr,
                BLOCK: tl.constexpr, WIDTH: tl.constexpr, CHECK: tl.constexpr):  # fmt: skip
    """Like `_taken`, for a whole row: k times the best after the last one."""
    slot = tl.arange(0, WIDTH)
    found = tl.full([WIDTH], 0, tl.int32)
    key, place = _part(x, start, 0, n, all, faults, LARGEST, BLOCK, CHECK)
    last = tl.max(key)
    last_place = tl.max(place * 0 - 1)
    for j in range(K):
        tops = empty_like(key)
        places = tl.full([BLOCK], _FAR, tl.int32)
        for begin in range(0, n, BLOCK):
            key, place = _part(x, start, begin, n, all, faults, LARGEST, BLOCK, CHECK)
            left = (key < last) | ((key == last) & (place > last_place)) | (last_place < 0)
            better = left & (place < n) & (key > tops)
            tops = tl.where(better, key, tops)
            places = tl.where(better, place, places)
        last = tl.max(tops)
        last_place = tl.min(tl.where(tops == last, places, _FAR))
        found = tl.where(slot == j, last_place, found)
    return found


@triton.jit
def _rows(
    x, values, indices, collected, faults, rows, n,
    K: tl.constexpr, LARGEST: tl.constexpr, BLOCK: tl.constexpr, COLLECTED: tl.constexpr,
    WIDTH: tl.constexpr, CHECK: tl.constexpr,
):  # fmt: skip
    """The k best of a row.

    `collected` has for each row a count and `COLLECTED` places, and is uninitialized.
    """
    row = tl.program_id(0).to(tl.int64)
    start = row * n
    all = (row * 0 + rows) * n
    slot = tl.arange(0, WIDTH)
    tops, place = _part(x, start, 0, n, all, faults, LARGEST, BLOCK, CHECK)
    if K == 1:
        for begin in range(BLOCK, n, BLOCK):
            key, here = _part(x, start, begin, n, all, faults, LARGEST, BLOCK, CHECK)
            place = tl.where(key > tops, here, place)
            tops = tl.maximum(key, tops)
        found = tl.min(tl.where(tops == tl.max(tops), place, _FAR)) + slot * 0
    else:
        for begin in range(BLOCK, n, BLOCK):
            key, here = _part(x, start, begin, n, all, faults, LARGEST, BLOCK, CHECK)
            tops = tl.maximum(key, tops)
        bound = tl.max(tops)
        for _ in tl.static_range(K - 1):
            # Equals count once: the bound is then lower than necessary, but valid.
            tops = tl.where(tops == bound, empty_like(tops), tops)
            bound = tl.max(tops)
        count = collected + row * (COLLECTED + 1)
        tl.store(count, 0)
        tl.debug_barrier()
        for begin in range(0, n, BLOCK):
            key, here = _part(x, start, begin, n, all, faults, LARGEST, BLOCK, CHECK)
            reaches = (key >= bound) & (here < n)
            if tl.max(reaches.to(tl.int32)) > 0:
                at = tl.atomic_add(count + here * 0, 1, mask=reaches)
                tl.store(count + 1 + at, here, mask=reaches & (at < COLLECTED))
        tl.debug_barrier()
        total = tl.load(count, volatile=True)
        if total <= COLLECTED:
            each = tl.arange(0, COLLECTED)
            there = each < total
            places = tl.load(count + 1 + each, mask=there, other=_FAR, volatile=True)
            number = guarded_load(x, start + places, there, 0, all, faults, 0, CHECK)
            key = key_of(number, LARGEST)
            found = _taken(tl.where(there, key, empty_like(key)), places, K, WIDTH)
        else:
            found = _one_by_one(x, start, n, all, faults, K, LARGEST, BLOCK, WIDTH, CHECK)
    own = slot < K
    number = guarded_load(x, start + found, own, 0, all, faults, 0, CHECK)
    to = row * K + slot
    written = (row * 0 + rows) * K
    guarded_store(values, to, number, own, written, faults, 1, CHECK)
    guarded_store(indices, to, found.to(tl.int64), own, written, faults, 2, CHECK)


_LAUNCHER = TritonLauncher(_rows)


def best_of_rows(
    x: Tensor,
    k: int,
    sizes: tuple[int, int],
    shape: tuple[int, ...],
    largest: bool,
    faults: Faults | None = None,
) -> tuple[Tensor, Tensor]:
    """Values and indices, `[rows, k]` in a shape, of the k best of `[rows, n]`."""
    rows, n = sizes
    values = x.new_empty(shape)
    indices = torch.empty_like(values, dtype=torch.int64)
    # Chosen by trials on an H200.
    few = rows < _MANY_ROWS and n > 4096
    part = 2048 if few else 256 if k > 1 else 1024
    collected = indices  # of one there is nothing to collect
    if k > 1:
        collected = x.new_empty(rows * (_COLLECTED + 1), dtype=torch.int32)
    noted = indices if faults is None else faults.record
    block = max(32, min(part, triton.next_power_of_2(n)))
    width = triton.next_power_of_2(k)
    _LAUNCHER(
        (rows, 1, 1),
        (x, values, indices, collected, noted),
        (rows, n),
        (k, largest, block, _COLLECTED, width, faults is not None),
        4 if few else 1,
    )
    return values, indices
