"""One view of a simulation as 8-bit levels, reduced on its device to the size of a screen."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, interpolate

from hotgrid.errors import ArgumentError
from hotgrid.grid.forms import GridState
from hotgrid.grid.model import pictured

from ._colours import CODED, SOLID_LEVEL, Colours, colours_of
from ._picture import need_matplotlib, solid_cells, view_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hotgrid.cluster import Communicator


class ReducedView:
    """One view of a simulation as a small image; only that many numbers leave the device.

    A pixel is the mean of its cells, without solid ones and numbers that are not finite. Three
    dims are shown as the middle slice of the first; one dim as a curve, filled below. Of a
    batch the first run is shown.

    Arguments:
        simulation: What is looked at.
        view: One of the model's views; by default the model's own choice.

    Attributes:
        name: The view.
        colours: The colours of the last image; their range grows at once and shrinks slowly.

    Raises:
        ArgumentError: The model has no such view.
        MissingPartError: matplotlib is not installed.
    """

    def __init__(self, simulation: GridState, view: str | None = None) -> None:
        need_matplotlib()
        self.name = view_name(simulation, view)
        self.colours = Colours("plain", 0.0, 1.0)
        self._is_first = True
        self._simulation = simulation
        solid = solid_cells(simulation)
        self._solid = None if solid is None else _plane(solid).to(simulation.device)

    def image(self, rows: int, columns: int) -> "NDArray[np.uint8]":
        """The levels of `colours` now, with a limited number of rows and columns.

        It keeps the shape of the grid, and is enlarged by a whole number where there is space.
        On a mesh all ranks must call it, and what travels has the size of the image.
        """
        simulation = self._simulation
        seen, place = self._seen()
        size = tuple(seen.shape) if place is None else simulation.size
        flat = len(size) == 1
        shown = (1, *size) if flat else size[-2:]
        # A curve may be as high as it likes.
        height, width, zoom = fitted(shown, columns if flat else rows, columns)
        if self.name in simulation.model.coloured:
            numbers = _nearest(_plane(seen), (height, width)).cpu().numpy()
            now = CODED
        else:
            if place is None:
                cells = _plane(seen)
                means, ends = _means_of_shown(cells, self._solid, (height, width)), _ends(cells)
            else:
                means, ends = place.reduced(seen, self._solid, (height, width))
            numbers = means.cpu().numpy()
            now = _colours(ends, numbers)
        self.colours = now if self._is_first else self.colours.followed(now)
        self._is_first = False
        levels = self.colours.levels(numbers)
        if flat:
            levels = _filled(levels[0], min(rows, max(8, columns // 3)))
        elif simulation.model.y_up:
            levels = levels[::-1]
        return levels.repeat(1 if flat else zoom, 0).repeat(zoom, 1)

    def _seen(self) -> "tuple[Tensor, _Place | None]":
        """The view, of the cells of this rank where it can be had so, and where they are."""
        simulation, model = self._simulation, self._simulation.model
        ranks = simulation._form.ranks
        # Codes of colours have no mean.
        whole = self.name in model.coloured or model.reach_of(self.name) is None
        if ranks is None or whole:
            seen, place = model.views()[self.name](next(simulation._looks())), None
        else:
            seen, first = simulation.look_here(self.name)
            place = _Place(ranks, first, simulation.size)
        if not isinstance(seen, Tensor) or seen.is_complex():
            pictured(model, self.name, seen)
            raise ArgumentError(f"the view `{self.name}` is not made of real numbers")
        return seen, place


class _Place(NamedTuple):
    """Where the cells of a rank are in a grid.

    Attributes:
        ranks: Those that have the others.
        first: The first of them.
        size: The grid.
    """

    ranks: "Communicator"
    first: tuple[int, ...]
    size: tuple[int, ...]

    def reduced(
        self, here: Tensor, solid: Tensor | None, shape: tuple[int, int]
    ) -> tuple[Tensor, tuple[float, float] | None]:
        """The means of all ranks, and the ends of whole numbers; the same on every rank."""
        first, size = self.first[-2:], self.size[-2:]
        if here.ndim == 3:
            middle = self.size[0] // 2 - self.first[0]
            here = here[middle] if 0 <= middle < len(here) else here[:0].flatten(0, 1)
        if here.ndim == 1:
            here, first, size = here[None], (0, *first), (1, *size)
        places = zip(size, shape, first, here.shape, strict=True)
        rows, columns = (_weights(*each).to(here.device) for each in places)
        shown = here.isfinite()
        if solid is not None:
            own = tuple(slice(a, a + n) for a, n in zip(first, here.shape, strict=True))
            shown &= ~solid[own]
        sums = torch.stack([torch.where(shown, here.float(), 0.0), shown.float()])
        sums = (rows @ sums @ columns.T).to(self.ranks.device)
        self.ranks.all_reduce(sums)
        means = torch.where(sums[1] >= 0.5, sums[0] / sums[1], torch.nan)
        low, high = _ends(here) or (math.inf, -math.inf)
        ends = torch.tensor([-low, high], dtype=torch.float64, device=self.ranks.device)
        self.ranks.all_reduce(ends, "max")
        whole = not here.is_floating_point()
        return means, (-ends[0].item(), ends[1].item()) if whole else None


def _weights(cells: int, pixels: int, first: int, count: int) -> Tensor:
    """By how much each of some cells counts for each pixel, `[pixels, count]`."""
    pixel, cell = torch.arange(pixels)[:, None], torch.arange(first, first + count)
    low, high = pixel * cells // pixels, ((pixel + 1) * cells + pixels - 1) // pixels
    return ((cell >= low) & (cell < high)) / (high - low)


def _ends(cells: Tensor) -> tuple[float, float] | None:
    """The smallest and the largest of whole numbers; None for others, or without any."""
    if cells.is_floating_point() or not cells.numel():
        return None
    return cells.min().item(), cells.max().item()


def fitted(shape: Sequence[int], rows: int, columns: int) -> tuple[int, int, int]:
    """Rows and columns of a grid that is reduced to fit, and how often to repeat each."""
    scale = min(rows / shape[0], columns / shape[1])
    if scale >= 1:
        return shape[0], shape[1], int(scale)
    return max(1, round(shape[0] * scale)), max(1, round(shape[1] * scale)), 1


def _plane(x: Tensor) -> Tensor:
    """The visible part of `[*space]`, in two dims."""
    return x[x.shape[0] // 2] if x.ndim == 3 else x[None] if x.ndim == 1 else x


def _means_of_shown(cells: Tensor, solid: Tensor | None, shape: tuple[int, int]) -> Tensor:
    """The means of cells, NaN where most are solid or not finite."""
    cells = cells.float()
    shown = cells.isfinite() if solid is None else cells.isfinite() & ~solid
    if shown.all():
        return _means(cells, shape)
    share = _means(shown.float(), shape)
    means = _means(torch.where(shown, cells, 0.0), shape) / share
    return torch.where(share >= 0.5, means, torch.nan)


def _nearest(cells: Tensor, shape: tuple[int, int]) -> Tensor:
    """One cell for each pixel: there is no mean of codes."""
    return interpolate(cells[None, None].float(), shape, mode="nearest-exact")[0, 0]


def _means(x: Tensor, shape: tuple[int, int]) -> Tensor:
    return adaptive_avg_pool2d(x[None, None], shape)[0, 0]


def _colours(ends: tuple[float, float] | None, numbers: np.ndarray) -> Colours:
    """The colours of means; `ends` are those of the cells where these are whole numbers."""
    if ends and colours_of(np.array(ends, dtype=np.int64)).kind == "states":
        # Means of few cells that are alive would all look the same.
        largest = float(np.nan_to_num(numbers).max())
        return Colours("states", 0.0, largest or 1.0)
    return colours_of(numbers)


def _filled(levels: "NDArray[np.uint8]", rows: int) -> "NDArray[np.uint8]":
    """Columns as high as their levels; what is above them is grey."""
    heights = 1 + levels.astype(int) * rows // SOLID_LEVEL
    heights[levels == SOLID_LEVEL] = 0
    below = np.arange(rows, 0, -1)[:, None] <= heights
    return np.where(below, levels, SOLID_LEVEL).astype(np.uint8)
