"""Top-k along any axis but the last, on a GPU.

A thread owns a column, walks along it, and keeps its k best in registers, sorted: of equals the
first stays ahead. If there are few columns they are split, and a second pass merges the parts.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from hotgrid.kernels.tune import Faults
from hotgrid.kernels.tune._triton_guarded import guarded_load, guarded_store
from hotgrid.kernels.tune._triton_launch import TritonLauncher

from ._triton_keys import empty_like, key_of

# Threads that keep the memory of an H200 busy, each with several loads in flight.
_BUSY = 1 << 17
_MANY_COLUMNS = 1 << 19


@triton.jit
def _inserted(best, places, key, place):
    """Insert a number into the k best, after its equals."""
    better = key > best[0]
    new_best = (tl.maximum(best[0], key),)
    new_places = (tl.where(better, place, places[0]),)
    for j in tl.static_range(1, len(best)):
        # What was ahead of the new one stays, and what was behind it moves on by one.
        moved = tl.where(better, places[j - 1], place)
        better = key > best[j]
        new_best = new_best + (tl.maximum(best[j], tl.minimum(best[j - 1], key)),)
        new_places = new_places + (tl.where(better, moved, places[j]),)
    return new_best, new_places


@triton.jit
def _columns(
    x, keys, places, values, indices, faults, columns, n, inner, rows, pieces,
    K: tl.constexpr, LARGEST: tl.constexpr, FIRST: tl.constexpr, LAST: tl.constexpr,
    COLUMNS: tl.constexpr, AHEAD: tl.constexpr, CHECK: tl.constexpr,
):  # fmt: skip
    """The k best of a piece of each column.

    The first pass reads `x`, the last writes `values` and `indices`; between them are
    `keys` and `places`, `[pieces * K, columns]`, of which this pass reads `rows`.
    """
    column = tl.program_id(0).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    own = column < columns
    outer = column // inner
    across = column - outer * inner
    start = outer * n * inner + across
    # Sizes beyond 32 bits, from arguments within them.
    many = tl.program_id(0).to(tl.int64) * 0 + columns
    read = many * n
    written = many * K
    piece = tl.program_id(1)
    length = tl.cdiv(rows, pieces)
    begin = piece * length
    end = tl.minimum(begin + length, rows)
    none = key_of(tl.load(x + start * 0), LARGEST)
    best = ()
    places_of_best = ()
    for _ in tl.static_range(K):
        best = best + (empty_like(none),)
        places_of_best = places_of_best + (tl.full([COLUMNS], -1, tl.int32),)
    for row in range(begin, end, AHEAD):
        seen = ()
        # All loads before any comparison: memory is kept busy.
        for i in tl.static_range(AHEAD):
            here = own & (row + i < end)
            along = column * 0 + row + i
            if FIRST:
                at = start + along * inner
                number = guarded_load(x, at, here, 0, read, faults, 0, CHECK)
                key = tl.where(here, key_of(number, LARGEST), empty_like(none))
                seen = seen + ((key, along.to(tl.int32)),)
            else:
                at = along * columns + column
                key = guarded_load(keys, at, here, 0, many * rows, faults, 3, CHECK)
                place = guarded_load(places, at, here, -1, many * rows, faults, 3, CHECK)
                seen = seen + ((tl.where(here, key, empty_like(none)), place),)
        for i in tl.static_range(AHEAD):
            best, places_of_best = _inserted(best, places_of_best, seen[i][0], seen[i][1])
    for j in tl.static_range(K):
        place = places_of_best[j]
        if LAST:
            number = guarded_load(
                x, start + place.to(tl.int64) * inner, own, 0, read, faults, 0, CHECK
            )
            at = (outer * K + j) * inner + across
            guarded_store(values, at, number, own, written, faults, 1, CHECK)
            guarded_store(indices, at, place.to(tl.int64), own, written, faults, 2, CHECK)
        else:
            at = (column * 0 + piece * K + j) * columns + column
            size = written * pieces
            guarded_store(keys, at, best[j], own, size, faults, 3, CHECK)
            guarded_store(places, at, place, own, size, faults, 3, CHECK)


_LAUNCHER = TritonLauncher(_columns)


def best_of_columns(
    x: Tensor,
    k: int,
    sizes: tuple[int, int, int],
    shape: tuple[int, ...],
    largest: bool,
    faults: Faults | None = None,
) -> tuple[Tensor, Tensor]:
    """Values and indices, `[outer, k, inner]` in a shape, of the k best of `[outer, n, inner]`.

    On a slow host views of that form would take as long as the kernel.
    """
    outer, n, inner = sizes
    columns = outer * inner
    # Chosen by trials on an H200.
    many = columns >= _MANY_COLUMNS
    at_once, ahead = (128 if many else 256), (8 if many or k > 7 else 16)
    pieces = max(1, min(_BUSY // columns, n // max(4 * k, 16)))
    values = x.new_empty(shape)
    indices = torch.empty_like(values, dtype=torch.int64)
    keys = places = indices  # where one pass does it all nothing goes there
    if pieces > 1:
        kind = torch.int64 if x.dtype in (torch.float64, torch.int32) else torch.int32
        keys = x.new_empty(pieces * k * columns, dtype=kind)
        places = torch.empty_like(keys, dtype=torch.int32)
    noted = indices if faults is None else faults.record

    def go(rows: int, pieces: int, first: bool, last: bool) -> None:
        _LAUNCHER(
            (triton.cdiv(columns, at_once), pieces, 1),
            (x, keys, places, values, indices, noted),
            (columns, n, inner, rows, pieces),
            (k, largest, first, last, at_once, ahead, faults is not None),
            at_once // 32,
        )

    go(n, pieces, True, pieces == 1)
    if pieces > 1:
        go(pieces * k, 1, False, True)
    return values, indices
