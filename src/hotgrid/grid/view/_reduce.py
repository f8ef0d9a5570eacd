"""Cells to pixels, numbers to bytes: in NumPy on a CPU, on the device elsewhere."""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from hotgrid.grid.output import Colours, colours_of
from hotgrid.tensors._torch_private import one_thread

SOLID = 255
"""The byte of a solid cell, and of NaN."""
# Points from which the range of colours is taken: all of them would cost more than the frame.
_SAMPLED = 1 << 13
# Rows of a frame that fit into a cache, in numbers.
_AT_ONCE = 1 << 16
# A grid with fewer cells is looked at by one thread: waking others takes longer.
_FEW_CELLS = 1 << 21
_LOCAL = threading.local()
# The bits of the largest number that becomes 254.
_LARGEST = np.float32(254.5).view(np.uint32)


@contextlib.contextmanager
def few_threads(device: torch.device, cells: int) -> Iterator[None]:
    """Compute with one thread inside, if a grid on a CPU is not large."""
    if device.type != "cpu" or cells > _FEW_CELLS:
        yield
        return
    with one_thread():
        yield


def means(x: Tensor, factor: int, *, traced: bool = False) -> Tensor:
    """Means over blocks of cells, `[h, w]` or `[d, h, w]`; the last ones may be smaller.

    `traced` means that a compiler records the operations, which must all be torch's.
    """
    if factor == 1:
        return x
    if x.device.type == "cpu" and not traced and x.numel() <= 4 * _FEW_CELLS:
        return torch.from_numpy(_means_by_rows(x, factor))
    if x.device.type == "cpu" and not traced:
        pool: Any = functional.avg_pool3d if x.ndim == 3 else functional.avg_pool2d
        return pool(x[None, None].float(), factor, ceil_mode=True, count_include_pad=False)[
            0, 0
        ]
    # A compiler joins this with what made the cells; a large pool it would call as it is.
    factors = (factor,) * x.ndim
    return block_sums(x, (0,) * x.ndim, factors) / block_counts(x.shape, factors, x.device)


def _means_by_rows(x: Tensor, factor: int) -> "np.ndarray[Any, Any]":
    """The same in NumPy, which adds rows four times as fast as one thread of torch pools."""
    sums: Any = (x.float() if x.dtype == torch.bfloat16 else x).numpy()
    for axis, n in enumerate(x.shape):
        blocks = np.zeros(
            (*sums.shape[:axis], -(-n // factor), *sums.shape[axis + 1 :]), np.float32
        )
        for first in range(min(factor, n)):
            part = sums[(slice(None),) * axis + (slice(first, None, factor),)]
            into = blocks[(slice(None),) * axis + (slice(part.shape[axis]),)]
            np.add(into, part, out=into, casting="unsafe")
        sums = blocks
    return sums / block_counts(x.shape, (factor,) * x.ndim, "cpu").numpy()


def block_sums(x: Tensor, start: Sequence[int], factors: Sequence[int]) -> Tensor:
    """Sums over blocks of a grid, of which `x` begins at a cell; float32."""
    pads: list[int] = []
    for n, at, f in zip(x.shape, start, factors, strict=True):
        lead = at % f
        pads = [lead, -(lead + n) % f, *pads]
    x = x.float()
    x = functional.pad(x, pads) if any(pads) else x
    if x.is_cuda and x.ndim > 1:
        return rows_then_columns(x, factors)
    for dim, f in reversed(list(enumerate(factors))):
        if f > 1:
            x = x.unflatten(dim, (-1, f)).sum(dim + 1)
    return x


def rows_then_columns(x: Tensor, factors: Sequence[int]) -> Tensor:
    """Sums over whole blocks, of two or three dims, for the compiler of a GPU.

    Columns are a pool, which it does not join with the rows: one thread would read all cells
    of a pixel, far from those of the next.
    """
    for dim, f in enumerate(factors[:-1]):
        x = x.unflatten(dim, (-1, f)).sum(dim + 1) if f > 1 else x
    if factors[-1] == 1:
        return x
    image = x if x.ndim == 3 else x[None]
    across = functional.avg_pool2d(image, (1, factors[-1]), divisor_override=1)
    return across if x.ndim == 3 else across[0]


def block_firsts(x: Tensor, start: Sequence[int], factors: Sequence[int]) -> Tensor:
    """The first cell of every block, and zeros for the others."""
    for dim, (n, at, f) in enumerate(zip(x.shape, start, factors, strict=True)):
        first = (torch.arange(n, device=x.device) + at) % f == 0
        x = x * first.view([-1 if i == dim else 1 for i in range(x.ndim)])
    return x


def block_counts(
    size: Sequence[int], factors: Sequence[int], device: torch.device | str
) -> Tensor:
    """How many cells each block has, float32; the last ones may have fewer."""
    found = torch.ones((), device=device)
    for n, f in zip(size, factors, strict=True):
        ends = torch.arange(0, n, f, device=device)
        found = found[..., None] * (n - ends).clamp(max=f).float()
    return found


def bin_means(n: int, bins: int, first: int, count: int, device: torch.device) -> Tensor:
    """A matrix that takes means over bins of `n` cells, of which `count` from `first` on."""
    rows = torch.zeros(bins, count, device=device)
    for i in range(bins):
        low, high = i * n // bins, -(-(i + 1) * n // bins)
        rows[i, max(0, low - first) : max(0, high - first)] = 1 / (high - low)
    return rows


def sampled(values: Tensor, states: bool) -> Tensor:
    """Some of the numbers of a frame, float32; of states the smallest and largest first."""
    # Not of the flattened values: those of a padded grid would be copied.
    every = max(1, int((values.numel() / _SAMPLED) ** (1 / values.ndim)))
    some = values[(slice(None, None, every),) * values.ndim].float().reshape(-1)
    ends = values.aminmax() if states else ()
    return torch.cat([*(end.float().view(1) for end in ends), some])


def colours_in(sample: Tensor, states: bool) -> Colours:
    """The colours that suit the numbers of `sampled`."""
    numbers = sample.numpy()
    if states and numbers[0] >= 0 and numbers[1] <= 1:
        return Colours("states", 0.0, 1.0)
    return colours_of(numbers[2:] if states else numbers)


def quantized(values: Tensor, colours: Colours) -> Tensor:
    """Numbers as bytes: 0 to 254 over the range, 255 where they are not numbers."""
    scale = 254 / (colours.high - colours.low or 1.0)
    if values.device.type == "cpu":
        return torch.from_numpy(_quantized_rows(values, colours.low, scale))
    scaled = ((values.float() - colours.low) * scale).clamp(0, 254).add(0.5)
    return scaled.nan_to_num(nan=float(SOLID)).to(torch.uint8)


def _quantized_rows(values: Tensor, low: float, scale: float) -> "np.ndarray[Any, Any]":
    numbers = (values if values.dtype == torch.float64 else values.float()).numpy()
    numbers = numbers.reshape(-1, numbers.shape[-1])
    found = np.empty(numbers.shape, np.uint8)
    rows = max(1, _AT_ONCE // numbers.shape[1])
    scratch = _scratch((rows, numbers.shape[1]))
    first, scale32 = np.float32(0.5 - low * scale), np.float32(scale)
    with np.errstate(all="ignore"):
        for at in range(0, len(numbers), rows):
            here = numbers[at : at + rows]
            some = scratch[: len(here)]
            np.multiply(here, scale32, out=some, casting="unsafe")
            np.add(some, first, out=some)
            # Looking takes less time than clipping, and few rows need it. The bits of numbers
            # below 0 and of NaN are larger than those of all others.
            if some.view(np.uint32).max() > _LARGEST:
                np.clip(some, 0.5, 254.5, out=some)
                np.nan_to_num(some, copy=False, nan=float(SOLID))
            found[at : at + rows] = some
    return found.reshape(values.shape)


def _scratch(shape: tuple[int, int]) -> "np.ndarray[Any, Any]":
    """Memory to compute in, the same for every frame of a thread.

    New memory costs more than the arithmetic: the system clears it page by page.
    """
    known = getattr(_LOCAL, "scratch", None)
    if known is None or known.shape != shape:
        known = _LOCAL.scratch = np.empty(shape, np.float32)
    return known


def bits(cells: Tensor) -> Tensor:
    """Two-state cells, eight a byte, the first in the highest bit, `[rows, bytes]`."""
    if cells.device.type == "cpu":
        return torch.from_numpy(np.packbits(cells.numpy() != 0, axis=1))
    height, width = cells.shape
    padded = functional.pad((cells != 0).to(torch.uint8), (0, -width % 8))
    weights = torch.tensor(
        [128, 64, 32, 16, 8, 4, 2, 1], dtype=torch.uint8, device=cells.device
    )
    return (padded.view(height, -1, 8) * weights).sum(-1, dtype=torch.uint8)
