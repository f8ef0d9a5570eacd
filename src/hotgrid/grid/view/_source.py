"""The sources of a frame's numbers: a whole grid, or one that is cut over ranks."""

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from hotgrid.grid.forms import GridState, look_box

from ._fused import FusedViews
from ._look import Box
from ._reduce import bin_means, block_counts, block_firsts, block_sums, means


class Source(Protocol):
    """Reduces views to pixels."""

    def pixels(self, view: str, box: Box) -> Tensor | None:
        """The means of cells, `[height, width]` or a volume; None where another rank has it.

        Where each cell is a pixel, cells keep their type.
        """
        ...

    def is_whole(self, view: str) -> bool:
        """Whether a view that was reduced is made of whole numbers."""
        ...

    def arrows(self, box: Box, rows: int, columns: int) -> Tensor | None:
        """Mean velocities on a lattice, `[rows, columns, 2]`, along y and along x."""
        ...


class WholeGrid:
    """The frames of a simulation in one process.

    On a GPU the view, the cut and the means become one compiled function, as soon as a viewer
    has looked at the same region for some frames; see `FusedViews`.

    Arguments:
        simulation: The simulation to show.
        fused: Whether to compile; by default on GPUs.
    """

    def __init__(self, simulation: GridState, *, fused: bool | None = None) -> None:
        self._simulation = simulation
        wanted = simulation.device.type == "cuda" and simulation._setting.compiled
        self._whole: dict[str, bool] = {}
        self.fused = FusedViews(enabled=wanted if fused is None else fused)

    def pixels(self, view: str, box: Box) -> Tensor:
        """The means of cells, on the device."""
        simulation, state = self._simulation, self._simulation._form.read()

        def reduced(*fields: Tensor) -> Tensor:
            stored = dict(zip(state, fields, strict=True))
            cut = look_box(simulation, stored, view, box.cells)
            self._whole[view] = not (cut.is_floating_point() or cut.is_complex())
            shape = [b - a for i, (a, b) in enumerate(box.cells) if i != box.axis]
            plane = cut.reshape((1, *shape) if len(shape) == 1 else shape)
            if view in simulation.model.coloured:
                return plane[(slice(None, None, box.factor),) * plane.ndim]
            return means(plane, box.factor, traced=self.fused.enabled)

        return self.fused((simulation.model, view, box), reduced, *state.values())

    def is_whole(self, view: str) -> bool:
        """Whether a view that was reduced is made of whole numbers."""
        return self._whole[view]

    def arrows(self, box: Box, rows: int, columns: int) -> Tensor:
        """Mean velocities, on the device."""
        simulation, state = self._simulation, self._simulation._form.read()

        def reduced(*fields: Tensor) -> Tensor:
            stored = dict(zip(state, fields, strict=True))
            parts = [look_box(simulation, stored, name, box.cells) for name in _VELOCITY]
            both = torch.stack(parts).float()
            return functional.adaptive_avg_pool2d(both, (rows, columns)).permute(1, 2, 0)

        key = (simulation.model, "arrows", box, rows, columns)
        return self.fused(key, reduced, *state.values())


class CutGrid:
    """The frames of a grid over a mesh: every rank adds up its cells, the first shows them.

    All ranks make the same calls. What travels has the size of the frame, not of the grid.

    Arguments:
        simulation: The simulation to show.
    """

    def __init__(self, simulation: GridState) -> None:
        self._simulation = simulation
        self._whole: dict[str, bool] = {}

    def pixels(self, view: str, box: Box) -> Tensor | None:
        """The means of cells, on the first rank."""
        here, first = self._simulation.look_here(view)
        coded = view in self._simulation.model.coloured
        self._whole[view] = not here.is_floating_point()
        whole = here.new_zeros(box.pixels, dtype=torch.float32)
        ends = [
            (max(a, at), min(b, at + n))
            for (a, b), at, n in zip(box.cells, first, here.shape, strict=True)
        ]
        if all(low < high for low, high in ends):
            own = here[
                tuple(slice(a - at, b - at) for (a, b), at in zip(ends, first, strict=True))
            ]
            start = [low - a for (low, _), (a, _) in zip(ends, box.cells, strict=True)]
            if coded:
                own = block_firsts(own, start, box.factors)
            sums = block_sums(own, start, box.factors)
            place = tuple(
                slice(at // f, at // f + n)
                for at, f, n in zip(start, box.factors, sums.shape, strict=True)
            )
            whole[place] = sums
        found = self._summed(whole)
        if found is None:
            return None
        if box.factor > 1 and not coded:
            counts = [b - a for a, b in box.cells]
            found = found / block_counts(counts, box.factors, found.device)
        elif not here.is_floating_point():
            found = found.to(here.dtype)
        return found.reshape(box.shown)

    def is_whole(self, view: str) -> bool:
        """Whether a view that was reduced is made of whole numbers."""
        return self._whole[view]

    def arrows(self, box: Box, rows: int, columns: int) -> Tensor | None:
        """Mean velocities, on the first rank."""
        parts: list[Tensor] = []
        (y0, y1), (x0, x1) = box.cells
        for name in _VELOCITY:
            here, (at_y, at_x) = self._simulation.look_here(name)
            low_y, high_y = max(y0, at_y), min(y1, at_y + here.shape[0])
            low_x, high_x = max(x0, at_x), min(x1, at_x + here.shape[1])
            if low_y >= high_y or low_x >= high_x:
                parts.append(here.new_zeros(rows, columns, dtype=torch.float32))
                continue
            own = here[low_y - at_y : high_y - at_y, low_x - at_x : high_x - at_x].float()
            down = bin_means(y1 - y0, rows, low_y - y0, high_y - low_y, own.device)
            across = bin_means(x1 - x0, columns, low_x - x0, high_x - low_x, own.device)
            parts.append(down @ own @ across.T)
        return self._summed(torch.stack(parts, -1))

    def _summed(self, x: Tensor) -> Tensor | None:
        ranks = self._simulation._form.ranks
        if ranks is None:
            return x
        x = x.contiguous()
        ranks.reduce(x, 0)
        return x if ranks.rank == 0 else None


_VELOCITY = ("velocity_y", "velocity_x")
