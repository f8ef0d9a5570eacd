"""One view of a simulation as 8-bit levels, reduced on its device to the size of a screen."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

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
        colours: Those of the last image; the range grows at once and shrinks slowly.

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
        """The levels of `colours` now, with at most so many rows and columns.

        It keeps the shape of the grid, and is enlarged by a whole number where there is space.
        """
        simulation = self._simulation
        seen = simulation.model.views()[self.name](next(simulation._looks()))
        if not isinstance(seen, Tensor) or seen.is_complex():
            pictured(simulation.model, self.name, seen)
            raise ArgumentError(f"the view `{self.name}` is not made of real numbers")
        cells = _plane(seen)
        flat = seen.ndim == 1
        # A curve may be as high as it likes.
        height, width, zoom = fitted(cells.shape, columns if flat else rows, columns)
        if self.name in simulation.model.coloured:
            numbers = _nearest(cells, (height, width)).cpu().numpy()
            now = CODED
        else:
            numbers = _means_of_shown(cells, self._solid, (height, width)).cpu().numpy()
            now = _colours(cells, numbers)
        self.colours = now if self._is_first else self.colours.followed(now)
        self._is_first = False
        levels = self.colours.levels(numbers)
        if flat:
            levels = _filled(levels[0], min(rows, max(8, columns // 3)))
        elif simulation.model.y_up:
            levels = levels[::-1]
        return levels.repeat(1 if flat else zoom, 0).repeat(zoom, 1)


def fitted(shape: Sequence[int], rows: int, columns: int) -> tuple[int, int, int]:
    """Rows and columns of a grid that is reduced to fit, and how often to repeat each."""
    scale = min(rows / shape[0], columns / shape[1])
    if scale >= 1:
        return shape[0], shape[1], int(scale)
    return max(1, round(shape[0] * scale)), max(1, round(shape[1] * scale)), 1


def _plane(x: Tensor) -> Tensor:
    """What is seen of `[*space]`, in two dims."""
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


def _colours(cells: Tensor, numbers: np.ndarray) -> Colours:
    if not cells.is_floating_point():
        ends = np.array([cells.min().item(), cells.max().item()], dtype=np.int64)
        if colours_of(ends).kind == "states":
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
