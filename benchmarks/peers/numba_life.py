"""Life in Numba with 64 cells in a word.

Column c of a row of n words is bit `c // n` of word `c % n`: neighbours to the left and
right are then whole words, and no bit moves between words but at the two ends of a row.
Blocks of rows small enough for the first cache are done in two flat loops, the sums
across first, so that each of them is made once and used by three rows.
"""

import numpy as np
from numba import njit, prange

_BITS = 64
_CACHED_WORDS = 1 << 10


def compiled_run(height: int, words: int):
    """The function `run(a, b, sums, steps)` for one grid, and its scratch `sums`."""
    pitch = words + 2
    rows = max(1, min(height, _CACHED_WORDS // pitch))
    blocks = -(-height // rows)
    room = (rows + 2) * pitch
    p, q, h, one = (np.uint64(n) for n in (pitch, 2 * pitch, room, 1))
    top = np.uint64(_BITS - 1)

    @njit
    def across(a, sums, start, here, count):
        """The low and the high bit of three cells side by side."""
        for x in range(1, count - 1):
            i = np.uint64(x)
            left, cell, right = a[start + i - one], a[start + i], a[start + i + one]
            either = left ^ right
            sums[here + i] = either ^ cell
            sums[here + h + i] = (either & cell) | (~either & right)

    @njit
    def down(a, b, sums, start, here, count):
        """The nine of a cell with itself: it lives on three, or on four if it lived."""
        for x in range(1, count - 1):
            i = np.uint64(x)
            k = here + i
            m1, d1, m2, d2 = sums[k + p], sums[k + q], sums[k + h + p], sums[k + h + q]
            e1, e2 = sums[k] ^ d1, sums[k + h] ^ d2
            ones, carry = e1 ^ m1, (e1 & m1) | (~e1 & d1)
            twos, fours = e2 ^ m2, (e2 & m2) | (~e2 & d2)
            pair = twos ^ carry
            quad = fours ^ (twos & carry)
            lived = a[start + p + i]
            b[start + p + i] = (pair ^ quad) & ~(ones ^ pair) & (lived | pair)

    @njit(parallel=True)
    def step(a, b, sums):
        for block in prange(blocks):
            begin = block * rows
            count = min(rows, height - begin)
            start, here = np.uint64(begin * pitch), np.uint64(block * 2 * room)
            across(a, sums, start, here, (count + 2) * pitch)
            down(a, b, sums, start, here, count * pitch)
            for y in range(begin + 1, begin + count + 1):
                row = np.uint64(y * pitch)
                first, last = b[row + one], b[row + np.uint64(words)]
                b[row] = (last << one) | (last >> top)
                b[row + np.uint64(words + 1)] = (first >> one) | (first << top)
            if block == 0:
                for x in range(pitch):
                    b[np.uint64((height + 1) * pitch + x)] = b[p + np.uint64(x)]
            if block == blocks - 1:
                for x in range(pitch):
                    b[np.uint64(x)] = b[np.uint64(height * pitch + x)]

    @njit
    def run(a, b, sums, steps):
        for _ in range(steps):
            step(a, b, sums)
            a, b = b, a

    return run, np.zeros(blocks * 2 * room, np.uint64)


class NumbaLife:
    """One run of B3/S23 on a torus: `start` is 0 and 1, `[y, x]`."""

    def __init__(self, start: np.ndarray) -> None:
        height, width = start.shape
        if width % _BITS:
            raise ValueError(f"the {width} columns are not a multiple of {_BITS}")
        words = width // _BITS
        bits = start.astype(np.uint64).reshape(height, _BITS, words)
        packed = np.bitwise_or.reduce(bits << np.arange(_BITS, dtype=np.uint64)[:, None], 1)
        self._words = words
        self._now = np.zeros((height + 2, words + 2), np.uint64)
        self._now[1:-1, 1:-1] = packed
        last, first = packed[:, -1], packed[:, 0]
        self._now[1:-1, 0] = (last << np.uint64(1)) | (last >> np.uint64(63))
        self._now[1:-1, -1] = (first >> np.uint64(1)) | (first << np.uint64(63))
        self._now[0], self._now[-1] = self._now[-2], self._now[1]
        self._now = self._now.ravel()
        self._next = self._now.copy()
        self._run, self._sums = compiled_run(height, words)

    def run(self, steps: int) -> None:
        """Take steps."""
        self._run(self._now, self._next, self._sums, steps)
        if steps % 2:
            self._now, self._next = self._next, self._now

    def read(self) -> np.ndarray:
        """The present state, in the layout of hotgrid."""
        inner = self._now.reshape(-1, self._words + 2)[1:-1, 1:-1]
        bits = inner[:, None, :] >> np.arange(_BITS, dtype=np.uint64)[:, None] & np.uint64(1)
        return bits.reshape(len(inner), -1).astype(np.uint8)
