"""What one viewer looks at, and the frame that shows it: cut and reduced on the device."""

import math
import struct
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from hotgrid.errors import ArgumentError
from hotgrid.grid.forms import GridState
from hotgrid.grid.output import Colours, colours_of, solid_cells

HEADER = struct.Struct("<4sIddBBHIIIff4fHHfB7x")
_MAGIC = b"HGF1"
_BYTES, _BITS, _VOLUME = range(3)
_COLOURS = {"plain": 0, "signed": 1, "states": 2}
_SOLID = 255
_MOST_PIXELS = 2048
_VOXELS = 96
# Points from which the range of colours is taken: all of them would cost more than the frame.
_SAMPLED = 1 << 14


@dataclass(frozen=True)
class Gaze:
    """What a viewer wants to see.

    Attributes:
        view: One of the model's views.
        region: The visible cells, `(y0, x0, y1, x1)`; beyond the grid it is clipped.
        pixels: Height and width of the canvas.
        axis: In 3-D, the axis that a slice is at right angles to.
        slice: In 3-D, which slice.
        range: The values of the first and last colour; None follows the numbers.
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

    def group(self) -> "Gaze":
        """The same for all viewers that can be shown the same frame."""
        return replace(self, number=0)


@dataclass(frozen=True)
class Frame:
    """The numbers of one frame, still on the device, and what its header says."""

    values: Tensor
    arrows: Tensor | None
    kind: int
    colours: Colours
    region: tuple[int, int, int, int]
    arrow_scale: float
    step: int
    time: float

    def packed(self, number: int, look: int, share: int) -> bytes:
        """The frame as a message for one viewer."""
        values = self.values
        depth, height, width = values.shape if values.ndim == 3 else (1, *values.shape)
        if self.kind == _BITS:
            width = self._width
        rows, columns = (0, 0) if self.arrows is None else self.arrows.shape[:2]
        head = HEADER.pack(
            _MAGIC, number, float(self.step), self.time, self.kind,
            _COLOURS[self.colours.kind], look % 65536, depth, height, width,
            self.colours.low, self.colours.high, *map(float, self.region),
            rows, columns, self.arrow_scale, share,
        )  # fmt: skip
        parts = [head, values.numpy().tobytes()]
        if self.arrows is not None:
            parts.append(self.arrows.numpy().tobytes())
        return b"".join(parts)

    @property
    def _width(self) -> int:
        return self.region[3] - self.region[1]

    def on_host(self) -> "Frame":
        """The same frame in main memory."""
        arrows = None if self.arrows is None else self.arrows.cpu()
        return replace(self, values=self.values.cpu(), arrows=arrows)


class Eye:
    """Makes the frames of one simulation; keeps what does not change from frame to frame.

    Arguments:
        simulation: What is looked at.
    """

    def __init__(self, simulation: GridState) -> None:
        self._simulation = simulation
        self._ranges: dict[tuple[str, int, int], Colours] = {}
        self._solid: tuple[object, Tensor | None] | None = None
        self._scratch: dict[tuple[int, ...], Tensor] = {}

    def frame(self, look: Gaze) -> Frame:
        """One frame of the present state.

        Raises:
            ArgumentError: The view is unknown or not made of real numbers.
        """
        simulation = self._simulation
        seen = simulation.look(look.view)
        if seen.is_complex():
            raise ArgumentError(f"the view `{look.view}` is not made of real numbers")
        rank = len(simulation.size)
        if rank == 3 and look.volume:
            return self._volume(look, seen)
        plane = _plane(seen, rank, look)
        region, factor = _fitted(look, tuple(plane.shape))
        y0, x0, y1, x1 = region
        cut = plane[y0:y1, x0:x1]
        states = not cut.is_floating_point() and look.range is None
        values = _reduced(cut, factor)
        colours = self._colours(look, values, states)
        solid = self._solid_plane(look, rank)
        arrows, scale = self._arrows(look, region, rank)
        make = lambda values, kind: Frame(
            values, arrows, kind, colours, region, scale, simulation.step_count, simulation.time
        )
        if colours.kind == "states" and factor == 1 and solid is None:
            return make(_bits(cut), _BITS)
        bytes_ = self._quantized(values, colours)
        if solid is not None:
            hidden = _reduced(solid[y0:y1, x0:x1], factor)
            bytes_ = torch.where(hidden > 0.5, _SOLID, bytes_).to(torch.uint8)
        return make(bytes_, _BYTES)

    def value(self, look: Gaze, at: tuple[int, int]) -> float:
        """The number of one cell of a view."""
        plane = _plane(self._simulation.look(look.view), len(self._simulation.size), look)
        height, width = plane.shape
        y, x = min(max(at[0], 0), height - 1), min(max(at[1], 0), width - 1)
        return float(plane[y, x])

    def _volume(self, look: Gaze, seen: Tensor) -> Frame:
        factor = max(1, math.ceil(max(seen.shape) / _VOXELS))
        values = _reduced(seen, factor)
        colours = self._colours(look, values, not seen.is_floating_point())
        simulation, (_, height, width) = self._simulation, seen.shape
        region = (0, 0, height, width)
        quantized = self._quantized(values, colours)
        now = simulation.step_count, simulation.time
        return Frame(quantized, None, _VOLUME, colours, region, 0.0, *now)

    def _quantized(self, values: Tensor, colours: Colours) -> Tensor:
        """Numbers as bytes: 0 to 254 over the range, 255 where they are not numbers."""
        key = tuple(values.shape)
        if key not in self._scratch:
            # New memory costs more than the arithmetic: the system clears it page by page.
            self._scratch = {key: torch.empty_like(values, dtype=torch.float32)}
        span = colours.high - colours.low or 1.0
        scaled = self._scratch[key].copy_(values) if values.dtype != torch.float32 else values
        scaled = torch.sub(scaled, colours.low, out=self._scratch[key])
        scaled.mul_(254 / span).clamp_(0, 254).add_(0.5)
        if not math.isfinite(float(scaled.sum())):
            scaled.nan_to_num_(nan=float(_SOLID))
        return scaled.to(torch.uint8)

    def _colours(self, look: Gaze, values: Tensor, states: bool) -> Colours:
        if look.range is not None:
            low, high = look.range
            return Colours("signed" if low == -high else "plain", low, high)
        now = _colours_of(values, states)
        key = (look.view, look.axis, look.volume)
        before = self._ranges.get(key)
        found = now if before is None else before.followed(now)
        self._ranges[key] = found
        return found

    def _solid_plane(self, look: Gaze, rank: int) -> Tensor | None:
        model = self._simulation.model
        if self._solid is None or self._solid[0] is not model:
            found = solid_cells(self._simulation)
            device = self._simulation.device
            self._solid = (model, None if found is None else found.to(device))
        solid = self._solid[1]
        return None if solid is None else _plane(solid, rank, look)

    def _arrows(
        self, look: Gaze, region: tuple[int, int, int, int], rank: int
    ) -> tuple[Tensor | None, float]:
        """Velocities on a coarse lattice over the region, int8 `[rows, columns, 2]`."""
        views = self._simulation.model.views()
        if not look.arrows or rank != 2 or not {"velocity_x", "velocity_y"} <= views.keys():
            return None, 0.0
        y0, x0, y1, x1 = region
        across = max(y1 - y0, x1 - x0) / look.arrows
        rows, columns = (max(1, round(n / across)) for n in (y1 - y0, x1 - x0))
        parts = [
            functional.adaptive_avg_pool2d(
                self._simulation.look(name)[None, None, y0:y1, x0:x1].float(), (rows, columns)
            )[0, 0]
            for name in ("velocity_y", "velocity_x")
        ]
        both = torch.stack(parts, -1)
        scale = float(both.norm(dim=-1).max()) or 1.0
        return (both * (127 / scale)).round().clamp(-127, 127).to(torch.int8), scale


def _plane(x: Tensor, rank: int, look: Gaze) -> Tensor:
    """The two dims that are seen: a slice of three, a single row of one."""
    if rank == 1:
        return x[None]
    if rank == 2:
        return x
    axis = min(look.axis, 2)
    return x.select(axis, min(max(look.slice, 0), x.shape[axis] - 1))


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


def _reduced(x: Tensor, factor: int) -> Tensor:
    """Means over blocks of cells; the last ones may be smaller."""
    if factor == 1:
        return x
    pool: Any = functional.avg_pool3d if x.ndim == 3 else functional.avg_pool2d
    return pool(x[None, None].float(), factor, ceil_mode=True, count_include_pad=False)[0, 0]


def _colours_of(values: Tensor, states: bool) -> Colours:
    """The colours that suit a frame, from some of its numbers."""
    flat = values.reshape(-1)
    some = flat[:: max(1, flat.numel() // _SAMPLED)]
    if states:
        high = float(values.max())
        if high <= 1 and float(values.min()) >= 0:
            return Colours("states", 0.0, 1.0)
    return colours_of(some.float().cpu().numpy())


def _bits(cells: Tensor) -> Tensor:
    """Two-state cells, eight a byte, the first in the highest bit, `[rows, bytes]`."""
    height, width = cells.shape
    padded = functional.pad((cells != 0).to(torch.uint8), (0, -width % 8))
    weights = torch.tensor(
        [128, 64, 32, 16, 8, 4, 2, 1], dtype=torch.uint8, device=cells.device
    )
    return (padded.view(height, -1, 8) * weights).sum(-1, dtype=torch.uint8)
