"""Loads and stores for Triton kernels that can be compiled with every access guarded.

`CHECK` is a constant of the kernel: without it these are plain `tl.load` and `tl.store`.
With it, an index outside of `0 <= index < length` is noted in `faults` (see `Faults`) and
the access is left out. `BUFFER` is the number of the buffer in `Faults`.
"""

import triton
import triton.language as tl


@triton.jit
def guarded_load(
    start, index, mask, other, length, faults, BUFFER: tl.constexpr, CHECK: tl.constexpr
):
    """Load `start[index]` where `mask` holds, `other` elsewhere."""
    if CHECK:
        bad = mask & ((index < 0) | (index >= length))
        _note(faults + BUFFER * 4, index, bad)
        mask = mask & (index >= 0) & (index < length)
    return tl.load(start + index, mask=mask, other=other)


@triton.jit
def guarded_store(
    start, index, value, mask, length, faults, BUFFER: tl.constexpr, CHECK: tl.constexpr
):
    """Store `value` to `start[index]` where `mask` holds."""
    if CHECK:
        bad = mask & ((index < 0) | (index >= length))
        _note(faults + BUFFER * 4 + 2, index, bad)
        mask = mask & (index >= 0) & (index < length)
    tl.store(start + index, value, mask=mask)


@triton.jit
def _note(slot, index, bad):
    at = index.to(tl.int64)
    tl.atomic_add(slot + at * 0, (at * 0 + 1), mask=bad)
    tl.atomic_min(slot + 1 + at * 0, at, mask=bad)
