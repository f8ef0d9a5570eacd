"""D2Q9 in Numba: pull, stream and collide fused, two buffers, structure of arrays.

What makes it fast was found by measurement. Both buffers are flat and all offsets are
constants of the compiled code, so that LLVM needs one overlap check and vectorises;
indices are unsigned, so that no negative index is looked for; rows refresh the margin
themselves, so that a step is one parallel region; solids are lists of cells that are
redone after their row, so that the loop over a row knows no mask.
"""

import time

import numpy as np
from numba import njit, prange

# Velocities (y, x) and opposites, in the order of hotgrid.
VELOCITIES = ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, -1), (1, -1), (-1, 1))
OPPOSITE = (0, 2, 1, 4, 3, 6, 5, 8, 7)


@njit(fastmath=True, error_model="numpy", inline="always")
def _collide(g0, g1, g2, g3, g4, g5, g6, g7, g8, omega):
    """BGK on populations shifted by their weights."""
    one, keep = np.float32(1), np.float32(1) - omega
    axis, diagonal = omega * np.float32(1 / 9), omega * np.float32(1 / 36)
    excess = g0 + (g1 + g2) + (g3 + g4) + (g5 + g6) + (g7 + g8)
    rising, falling = g5 - g6, g7 - g8
    mx = (g1 - g2) + rising - falling
    my = (g3 - g4) + rising + falling
    volume = one / (one + excess)
    ux, uy = mx * volume, my * volume
    xx, yy = mx * ux, my * uy
    base = excess - np.float32(1.5) * (xx + yy)
    plus, minus = my + mx, my - mx
    even_x = axis * (base + np.float32(4.5) * xx)
    even_y = axis * (base + np.float32(4.5) * yy)
    even_p = diagonal * (base + np.float32(4.5) * (plus * (uy + ux)))
    even_m = diagonal * (base + np.float32(4.5) * (minus * (uy - ux)))
    odd_x, odd_y = np.float32(3) * axis * mx, np.float32(3) * axis * my
    odd_p, odd_m = np.float32(3) * diagonal * plus, np.float32(3) * diagonal * minus
    return (
        keep * g0 + np.float32(4) * axis * base,
        keep * g1 + (even_x + odd_x),
        keep * g2 + (even_x - odd_x),
        keep * g3 + (even_y + odd_y),
        keep * g4 + (even_y - odd_y),
        keep * g5 + (even_p + odd_p),
        keep * g6 + (even_p - odd_p),
        keep * g7 + (even_m + odd_m),
        keep * g8 + (even_m - odd_m),
    )


def compiled_run(height: int, width: int, kind: str, parallel: bool):
    """The function `run(a, b, omega, steps, first, cells, links)` for one grid.

    `first[y]` is where the cells of row y begin in `cells`, flat places in a plane;
    `links` has a bit for every population that comes back at such a cell.
    """
    pitch = width + 2
    plane = pitch * (height + 2)
    # Where each population is pulled from, and the planes themselves, seen from a cell.
    p1, p2, p3, p4, p5, p6, p7, p8 = (
        np.uint64(k * plane - dy * pitch - dx) for k, (dy, dx) in enumerate(VELOCITIES) if k
    )
    s1, s2, s3, s4, s5, s6, s7, s8 = (np.uint64(k * plane) for k in range(1, 9))
    row, one = np.uint64(pitch), np.uint64(1)
    half, full = kind == "half-way", kind == "full-way"

    @njit(parallel=parallel, fastmath=True, error_model="numpy")
    def step(a, b, omega, first, cells, links):
        for y in prange(height):
            start = (np.uint64(y) + one) * row + one
            for x in range(width):
                i = start + np.uint64(x)
                (
                    b[i], b[i + s1], b[i + s2], b[i + s3], b[i + s4],
                    b[i + s5], b[i + s6], b[i + s7], b[i + s8],
                ) = _collide(
                    a[i], a[i + p1], a[i + p2], a[i + p3], a[i + p4],
                    a[i + p5], a[i + p6], a[i + p7], a[i + p8], omega,
                )  # fmt: skip
            if half:
                for j in range(first[y], first[y + 1]):
                    i, cut = cells[j], links[j]
                    (
                        b[i], b[i + s1], b[i + s2], b[i + s3], b[i + s4],
                        b[i + s5], b[i + s6], b[i + s7], b[i + s8],
                    ) = _collide(
                        a[i],
                        a[i + s2] if cut & 1 else a[i + p1],
                        a[i + s1] if cut & 2 else a[i + p2],
                        a[i + s4] if cut & 4 else a[i + p3],
                        a[i + s3] if cut & 8 else a[i + p4],
                        a[i + s6] if cut & 16 else a[i + p5],
                        a[i + s5] if cut & 32 else a[i + p6],
                        a[i + s8] if cut & 64 else a[i + p7],
                        a[i + s7] if cut & 128 else a[i + p8],
                        omega,
                    )  # fmt: skip
            if full:
                for j in range(first[y], first[y + 1]):
                    i = cells[j]
                    b[i] = a[i]
                    b[i + s1], b[i + s2] = a[i + p2], a[i + p1]
                    b[i + s3], b[i + s4] = a[i + p4], a[i + p3]
                    b[i + s5], b[i + s6] = a[i + p6], a[i + p5]
                    b[i + s7], b[i + s8] = a[i + p8], a[i + p7]
            # Only what is pulled across an end is copied there.
            end = start + np.uint64(width - 1)
            for s in (s1, s5, s8):
                b[start - one + s] = b[end + s]
            for s in (s2, s6, s7):
                b[end + one + s] = b[start + s]
            if y == 0:
                for s in (s4, s6, s8):
                    for x in range(pitch):
                        i = np.uint64(x) + s
                        b[i + np.uint64((height + 1) * pitch)] = b[i + row]
            if y == height - 1:
                for s in (s3, s5, s7):
                    for x in range(pitch):
                        i = np.uint64(x) + s
                        b[i] = b[i + np.uint64(height * pitch)]

    @njit
    def run(a, b, omega, steps, first, cells, links):
        for _ in range(steps):
            step(a, b, omega, first, cells, links)
            a, b = b, a

    return run


class NumbaFlow:
    """One run: `start` is `[9, y, x]` float32, shifted; `solid` is bool `[y, x]` or None."""

    def __init__(self, start: np.ndarray, omega: float, solid=None, kind: str = "") -> None:
        _, height, width = start.shape
        self._size = (height, width)
        self._omega = np.float32(omega)
        padded = np.pad(start, ((0, 0), (1, 1), (1, 1)), mode="wrap").astype(np.float32)
        self._now, self._next = padded.ravel(), padded.ravel().copy()
        self._lists = _lists(solid, kind, height, width)
        shapes = {True: compiled_run(height, width, kind, True)}
        if height * width <= 1 << 16:
            shapes[False] = compiled_run(height, width, kind, False)
        self.how = ""
        self._run = shapes[True]
        if len(shapes) > 1:
            self._run = min(shapes.values(), key=self._seconds)
            self.how = "all threads" if self._run is shapes[True] else "one thread"

    def run(self, steps: int) -> None:
        """Take steps."""
        self._run(self._now, self._next, self._omega, steps, *self._lists)
        if steps % 2:
            self._now, self._next = self._next, self._now

    def read(self) -> np.ndarray:
        """The present state, in the layout of hotgrid."""
        height, width = self._size
        return self._now.reshape(9, height + 2, width + 2)[:, 1:-1, 1:-1]

    def _seconds(self, run) -> float:
        a, b = self._now.copy(), self._next.copy()
        best = float("inf")
        for _ in range(20):
            begin = time.perf_counter()
            run(a, b, self._omega, 100, *self._lists)
            best = min(best, time.perf_counter() - begin)
        return best


def _lists(solid, kind: str, height: int, width: int):
    """The cells that a row redoes, row by row, and which populations come back there."""
    links = np.zeros((height, width), np.uint8)
    if solid is not None and kind == "half-way":
        for k, velocity in enumerate(VELOCITIES[1:]):
            links |= (np.roll(solid, velocity, (0, 1)) & ~solid).astype(np.uint8) << k
    elif solid is not None:
        links[solid] = 255
    y, x = np.nonzero(links)
    first = np.searchsorted(y, np.arange(height + 1)).astype(np.int64)
    cells = ((y + 1) * (width + 2) + x + 1).astype(np.uint64)
    return first, cells, links[y, x]
