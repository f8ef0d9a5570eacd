"""The view of one viewer, the cells that it needs, and the frame that shows it."""

import math
import struct
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hotgrid.grid.output import Colours

HEADER = struct.Struct("<4sIddBBHIIIff4fHHfB7x")
BYTES, BITS, VOLUME = range(3)
"""The kinds of payload of a frame."""
_MAGIC = b"HGF1"
_COLOURS = {"plain": 0, "signed": 1, "states": 2, "coded": 3}
_MOST_PIXELS = 2048
_VOXELS = 96


@dataclass(frozen=True)
class Gaze:
    """The view that a viewer asks for.

    Attributes:
        view: One of the model's views.
        region: The visible cells, `(y0, x0, y1, x1)`; beyond the grid it is clipped.
        pixels: Height and width of the canvas.
        axis: In 3-D, the axis that a slice is at right angles to.
        slice: In 3-D, which slice.
        range: The values of the first and last colour; None adapts to the values.
        arrows: How many arrows along the longer side; 0 for none.
        volume: In 3-D, whether the whole box is wanted.
        number: Counts the looks of a viewer.
    """

    view: str
    region: tuple[float, float, float, float]
    pixels: tuple[int, int] = (512, 512)
    axis: int = 0
    slice: int = 0
    range: tuple[float, float] | None = None
    arrows: int = 0
    volume: bool = False
    number: int = 0

    @classmethod
    def of_plain(cls, told: dict[str, Any]) -> "Gaze":
        """From its fields after a trip through JSON, which makes lists of tuples."""
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in told.items()
        }
        return cls(**fields)

    def group(self) -> "Gaze":
        """The same for all viewers that can be shown the same frame."""
        return replace(self, number=0)


@dataclass(frozen=True)
class Box:
    """The cells of a frame.

    Attributes:
        cells: The first and the one after the last, along each axis of the grid.
        factor: How many of them go into a pixel, along each axis that is seen.
        region: The same in the plane that is seen, `(y0, x0, y1, x1)`.
        axis: The axis of the grid that is cut at a slice; None where there is none.
    """

    cells: tuple[tuple[int, int], ...]
    factor: int
    region: tuple[int, int, int, int]
    axis: int | None = None

    @property
    def slices(self) -> tuple[slice, ...]:
        """The cells in a tensor of the whole grid."""
        return tuple(slice(*ends) for ends in self.cells)

    @property
    def factors(self) -> tuple[int, ...]:
        """How many cells go into a pixel, along each axis of the grid."""
        return tuple(1 if i == self.axis else self.factor for i in range(len(self.cells)))

    @property
    def pixels(self) -> tuple[int, ...]:
        """How many pixels there are along each axis of the grid."""
        pairs = zip(self.cells, self.factors, strict=True)
        return tuple(-(-(b - a) // f) for (a, b), f in pairs)

    @property
    def shown(self) -> tuple[int, ...]:
        """The pixels along each axis that is seen: two of them, or three of a volume."""
        found = tuple(n for i, n in enumerate(self.pixels) if i != self.axis)
        return (1, *found) if len(found) == 1 else found


def box_of(look: Gaze, size: tuple[int, ...]) -> Box:
    """The cells that a viewer sees."""
    rank = len(size)
    if rank == 3 and look.volume:
        factor = max(1, math.ceil(max(size) / _VOXELS))
        return Box(tuple((0, n) for n in size), factor, (0, 0, size[1], size[2]))
    if rank == 3:
        axis = min(look.axis, 2)
        region, factor = _fitted(look, tuple(n for i, n in enumerate(size) if i != axis))
        at = min(max(look.slice, 0), size[axis] - 1)
        cells = [(region[0], region[2]), (region[1], region[3])]
        cells.insert(axis, (at, at + 1))
        return Box(tuple(cells), factor, region, axis)
    region, factor = _fitted(look, (1, *size) if rank == 1 else size)
    cells = [(region[0], region[2]), (region[1], region[3])][2 - rank :]
    return Box(tuple(cells), factor, region)


def cell_box(look: Gaze, size: tuple[int, ...], at: tuple[int, int]) -> Box:
    """The one cell of a plane, moved into the grid where it is outside."""
    y, x = (float(n) for n in at)
    plane = replace(look, volume=False, region=(y, x, y + 1, x + 1), pixels=(1, 1))
    return box_of(plane, size)


def _fitted(look: Gaze, shape: tuple[int, ...]) -> tuple[tuple[int, int, int, int], int]:
    """Whole cells that cover the region, and how many of them go into a pixel."""
    cells = [(look.region[0], look.region[2]), (look.region[1], look.region[3])]
    pixels = [min(max(n, 1), _MOST_PIXELS) for n in look.pixels]
    spans = [(max(0.0, a), min(float(n), b)) for (a, b), n in zip(cells, shape, strict=True)]
    factor = max(
        1, *(math.ceil((b - a) / n - 1e-6) for (a, b), n in zip(spans, pixels, strict=True))
    )
    found: list[tuple[int, int]] = []
    for (a, b), n in zip(spans, shape, strict=True):
        # Pixels begin at multiples of the factor, so that panning does not make them flicker.
        first = min(int(max(a, 0) // factor) * factor, (n - 1) // factor * factor)
        last = min(n, max(first + factor, math.ceil(b / factor) * factor))
        found.append((first, last))
    (y0, y1), (x0, x1) = found
    return (y0, x0, y1, x1), factor


@dataclass(frozen=True)
class Frame:
    """The bytes of one frame, and what its header says.

    Attributes:
        values: uint8 `[height, width]`, `[depth, height, width]`, or bits
            `[height, width / 8]`.
        arrows: int8 `[rows, columns, 2]`; None without.
        kind: `BYTES`, `BITS` or `VOLUME`.
        colours: Colours and their range.
        region: The cells that are seen.
        arrow_scale: The speed of the longest arrow.
        step: The step count.
        time: The time of the model.
    """

    values: "np.ndarray[Any, Any]"
    arrows: "np.ndarray[Any, Any] | None"
    kind: int
    colours: Colours
    region: tuple[int, int, int, int]
    arrow_scale: float
    step: int
    time: float

    def packed(self, number: int, look: int, share: int) -> bytes:
        """The frame as a message for one viewer."""
        shape = self.values.shape
        depth, height, width = shape if len(shape) == 3 else (1, *shape)
        if self.kind == BITS:
            width = self.region[3] - self.region[1]
        rows, columns = (0, 0) if self.arrows is None else self.arrows.shape[:2]
        head = HEADER.pack(
            _MAGIC, number, float(self.step), self.time, self.kind,
            _COLOURS[self.colours.kind], look % 65536, depth, height, width,
            self.colours.low, self.colours.high, *map(float, self.region),
            rows, columns, self.arrow_scale, share,
        )  # fmt: skip
        arrows = b"" if self.arrows is None else self.arrows.tobytes()
        return b"".join([head, np.ascontiguousarray(self.values).data.cast("B"), arrows])
