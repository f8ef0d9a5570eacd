"""A whole step of neural cells in one Triton kernel: perceive, two products, update.

A program walks down a strip of rows. It keeps what filters need of the two rows above in
registers, so that every row is loaded once, with its left and right neighbours from the cache.
"""

from typing import NamedTuple

import triton
import triton.language as tl
from torch import Tensor

from hotgrid.kernels.tune import TritonLauncher


@triton.jit
def _seen(
    given, y, x, c, rows, columns, ends, beyond,
    C: tl.constexpr, PADDED: tl.constexpr, CONSTANT: tl.constexpr,
):  # fmt: skip
    """Cells `[M, PADDED]` of a row, at columns; both may be one beyond the ends."""
    low_y, high_y, low_x, high_x = ends
    row = tl.where(y < 0, low_y, tl.where(y >= rows, high_y, y))
    column = tl.where(x < 0, low_x, tl.where(x >= columns, high_x, x))
    there = given + row.to(tl.int64) * (columns * C)
    place = there + column[:, None] * C + c[None, :]
    if not CONSTANT:
        if C == PADDED:
            return tl.load(place).to(tl.float32)
        return tl.load(place, mask=(c < C)[None, :], other=0.0).to(tl.float32)
    beyond_low_y, beyond_high_y, beyond_low_x, beyond_high_x = beyond
    inside = (row >= 0) & (column >= 0)
    across = tl.where(x < 0, beyond_low_x, beyond_high_x)
    down = tl.where(y < 0, beyond_low_y, beyond_high_y)
    other = tl.where(column >= 0, down, across)
    cells = tl.load(place, mask=inside[:, None] & (c < C)[None, :], other=0.0).to(tl.float32)
    return tl.where(inside[:, None] | (c >= C)[None, :], cells, other[:, None])


@triton.jit
def _row(
    given, y, x, c, rows, columns, ends, beyond,
    C: tl.constexpr, PADDED: tl.constexpr, CONSTANT: tl.constexpr,
    ALIVE: tl.constexpr, AROUND: tl.constexpr,
):  # fmt: skip
    """The inputs of filters in a row: its cells, sums across and along, and the most alive."""
    left = _seen(given, y, x - 1, c, rows, columns, ends, beyond, C, PADDED, CONSTANT)
    here = _seen(given, y, x, c, rows, columns, ends, beyond, C, PADDED, CONSTANT)
    right = _seen(given, y, x + 1, c, rows, columns, ends, beyond, C, PADDED, CONSTANT)
    most = tl.zeros([x.shape[0], 1], tl.float32)
    if ALIVE >= 0:
        one = tl.zeros([1], tl.int32) + ALIVE
        most = _seen(given, y, x, one, rows, columns, ends, beyond, C, C, CONSTANT)
        if AROUND:
            beside = _seen(given, y, x - 1, one, rows, columns, ends, beyond, C, C, CONSTANT)
            most = tl.maximum(most, beside)
            beside = _seen(given, y, x + 1, one, rows, columns, ends, beyond, C, C, CONSTANT)
            most = tl.maximum(most, beside)
    return here, right - left, left + 2 * here + right, most


@triton.jit
def _step(
    given, to, random, hidden, hidden_bias, output, output_bias, numbers,
    rows, columns, low_y, high_y, low_x, high_x,
    C: tl.constexpr, PADDED: tl.constexpr, HIDDEN: tl.constexpr, FILTERS: tl.constexpr,
    ALIVE: tl.constexpr, AROUND: tl.constexpr, FIRE: tl.constexpr, CONSTANT: tl.constexpr,
    TF32: tl.constexpr, M: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    c = tl.arange(0, PADDED)
    h = tl.arange(0, HIDDEN)
    x = tl.program_id(0) * M + tl.arange(0, M)
    own = x < columns
    x = tl.minimum(x, columns - 1)
    top = tl.program_id(1) * ROWS
    plane = tl.program_id(2).to(tl.int64) * rows * columns
    wide = tl.full([], 1, tl.int64) * columns
    given += plane * C
    to += plane * C
    random += plane
    kind: tl.constexpr = hidden.dtype.element_ty
    precision: tl.constexpr = "tf32" if TF32 else "ieee"
    ends = (low_y, high_y, low_x, high_x)
    beyond = (
        tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2), tl.load(numbers + 3),
    )  # fmt: skip
    threshold, fire = tl.load(numbers + 4), tl.load(numbers + 5)
    weight = hidden + c[:, None] * HIDDEN + h[None, :]
    count: tl.constexpr = PADDED * HIDDEN
    last = tl.load(output + h[:, None] * PADDED + c[None, :])
    bias = tl.load(hidden_bias + h)[None, :]
    last_bias = tl.load(output_bias + c)[None, :]

    _, across_0, along_0, most_0 = _row(
        given, top - 1, x, c, rows, columns, ends, beyond, C, PADDED, CONSTANT, ALIVE, AROUND
    )
    here, across_1, along_1, most_1 = _row(
        given, top, x, c, rows, columns, ends, beyond, C, PADDED, CONSTANT, ALIVE, AROUND
    )
    for y in range(top, tl.minimum(top + ROWS, rows)):
        below, across_2, along_2, most_2 = _row(
            given, y + 1, x, c, rows, columns, ends, beyond,
            C, PADDED, CONSTANT, ALIVE, AROUND,
        )  # fmt: skip
        inside = tl.zeros([M, HIDDEN], tl.float32) + bias
        if FILTERS & 1:
            part = tl.load(weight)
            inside = tl.dot(here.to(kind), part, inside, input_precision=precision)
        if FILTERS & 2:
            seen = (along_2 - along_0) * 0.125
            part = tl.load(weight + count)
            inside = tl.dot(seen.to(kind), part, inside, input_precision=precision)
        if FILTERS & 4:
            seen = (across_0 + 2 * across_1 + across_2) * 0.125
            part = tl.load(weight + 2 * count)
            inside = tl.dot(seen.to(kind), part, inside, input_precision=precision)
        if FILTERS & 8:
            seen = (along_0 + 2 * along_1 + along_2 - 16 * here) * 0.0625
            part = tl.load(weight + 3 * count)
            inside = tl.dot(seen.to(kind), part, inside, input_precision=precision)
        inside = tl.maximum(inside, 0.0).to(kind)
        change = tl.dot(inside, last, input_precision=precision) + last_bias
        if FIRE:
            drawn = random + y * wide + x
            number = tl.load(drawn)
            number = number ^ (number << 13)
            number = number ^ ((number >> 17) & 0x7FFF)
            number = number ^ (number << 5)
            tl.store(drawn, number, mask=own)
            fires = number.to(tl.float32) * 2.3283064365386963e-10 + 0.5 < fire
            change = tl.where(fires[:, None], change, 0.0)
        after = here + change
        if ALIVE >= 0:
            most = most_1
            if AROUND:
                most = tl.maximum(tl.maximum(most_0, most_1), most_2)
            after = tl.where(most > threshold, after, 0.0)
        place = to + y * (wide * C) + x[:, None] * C + c[None, :]
        stored = own[:, None] & (c < C)[None, :]
        tl.store(place, after.to(to.dtype.element_ty), mask=stored)
        across_0, across_1, along_0, along_1 = across_1, across_2, along_1, along_2
        most_0, most_1, here = most_1, most_2, below


_LAUNCH = TritonLauncher(_step)


class Tiling(NamedTuple):
    """How a grid is divided: cells of a row and rows for each program, and its warps."""

    cells: int
    rows: int
    warps: int


TILINGS = (
    Tiling(128, 16, 4),
    Tiling(64, 16, 4),
    Tiling(128, 32, 4),
    Tiling(128, 16, 8),
    Tiling(256, 16, 8),
    Tiling(64, 32, 4),
    Tiling(64, 8, 4),
    Tiling(128, 64, 4),
)
"""The tilings that are timed; the first is used where nothing is timed."""


class PackedNetwork(NamedTuple):
    """A network as the kernel reads it, with sizes that are powers of two.

    Attributes:
        filters: A bit for each of `FILTERS` that it perceives.
        hidden: `[4, channels, hidden]`, in the type of products; zero for other filters.
        hidden_bias: float32 `[hidden]`.
        output: `[hidden, channels]`, in the type of products.
        output_bias: float32 `[channels]`.
    """

    filters: int
    hidden: Tensor
    hidden_bias: Tensor
    output: Tensor
    output_bias: Tensor

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors in the order in which the kernel takes them."""
        return self[1:]


class Ends(NamedTuple):
    """The row or column that is seen beyond each edge, -1 for a constant number."""

    low_y: int
    high_y: int
    low_x: int
    high_x: int


def cells_pass(
    to: Tensor,
    given: Tensor,
    random: Tensor | None,
    network: PackedNetwork,
    numbers: Tensor,
    ends: Ends,
    *,
    alive: int | None,
    around: bool,
    tf32: bool,
    tiling: Tiling,
) -> None:
    """One step from one buffer to another; random numbers are advanced in place.

    Arguments:
        to: Where the result goes, `[runs, rows, columns, channels]`, contiguous.
        given: The present cells.
        random: int32 `[runs, rows, columns]`, or None where every cell fires.
        network: The rule.
        numbers: float32 `[6]`: what is beyond the ends low y, high y, low x and high x, the
            threshold and the probability to fire.
        ends: Which rows and columns are seen beyond the ends.
        alive: The channel that says whether a cell is alive.
        around: Whether cells beside one are alive too.
        tf32: Whether products of single precision may be rounded to TF32.
        tiling: How the grid is divided.
    """
    runs, rows, columns, channels = given.shape
    padded, width = network.output_bias.shape[0], network.hidden_bias.shape[0]
    _LAUNCH(
        (triton.cdiv(columns, tiling.cells), triton.cdiv(rows, tiling.rows), runs),
        # Where every cell fires no random numbers are read; the kernel needs some address.
        (given, to, numbers if random is None else random, *network.tensors, numbers),
        (rows, columns, *ends),
        (
            channels, padded, width, network.filters, -1 if alive is None else alive, around,
            random is not None, -1 in ends, tf32, tiling.cells, tiling.rows,
        ),
        num_warps=tiling.warps,
    )  # fmt: skip
