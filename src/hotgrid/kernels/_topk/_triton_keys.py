"""Numbers as keys: whole numbers of the same order, for the kernels of top-k on a GPU."""

import triton
import triton.language as tl


@triton.jit
def key_of(x, LARGEST: tl.constexpr):
    """The key of numbers: the larger, the better.

    NaN is the largest number and both zeros are one. No key is the least of its type, which
    is the mark of an empty place.
    """
    if x.dtype.is_floating():
        if x.dtype == tl.float64:
            bits = x.to(tl.int64, bitcast=True)
            key = bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)
            key = tl.where(x != x, 0x7FFFFFFFFFFFFFFF, key)
        else:
            x = x.to(tl.float32)
            bits = x.to(tl.int32, bitcast=True)
            key = bits ^ ((bits >> 31) & 0x7FFFFFFF)
            key = tl.where(x != x, 0x7FFFFFFF, key)
        key = tl.where(x == 0, 0, key)
    elif x.dtype.primitive_bitwidth < 32:
        key = x.to(tl.int32)
    else:
        key = x.to(tl.int64)
    return key if LARGEST else -key


@triton.jit
def empty_like(key):
    """The mark of an empty place: below every key."""
    if key.dtype == tl.int64:
        mark = tl.full(key.shape, -0x7FFFFFFFFFFFFFFF, tl.int64) - 1
    else:
        mark = tl.full(key.shape, -0x80000000, tl.int32)
    return mark
