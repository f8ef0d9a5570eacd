"""Strokes of a brush: masks on the grid, and a memory of what they covered."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.life import read_rle
from hotgrid.grid.run import LiveControl, Moment, Simulation

# Bytes of states that undo may hold on to.
_MEMORY = 256 << 20
_MOST = 100


@dataclass
class _Done:
    """One stroke, and what was stored here before it."""

    number: int
    viewer: int
    before: Moment

    @property
    def bytes(self) -> int:
        return sum(x.numel() * x.element_size() for x in self.before.own.values())


@dataclass
class Strokes:
    """Paints into a simulation, and takes strokes back.

    Arguments:
        control: The control of the simulation to paint into.
    """

    control: LiveControl
    _done: deque[_Done] = field(default_factory=deque)
    _undone: list[_Done] = field(default_factory=list)

    @property
    def simulation(self) -> Simulation:
        """The simulation to paint into."""
        return self.control.simulation

    @property
    def any(self) -> bool:
        """Whether there are strokes that were not taken back."""
        return bool(self._done)

    def stroke(
        self,
        viewer: int,
        number: int,
        brush: str,
        value: float,
        radius: float,
        points: Sequence[Sequence[float]],
        plane: tuple[int, int] | None = None,
    ) -> None:
        """Paint discs along a line of points, in cells; `plane` is axis and slice in 3-D."""
        size = self.simulation.size
        flat = size if plane is None else tuple(n for i, n in enumerate(size) if i != plane[0])
        flat = flat if len(flat) == 2 else (1, *flat)
        mask = disc_mask(flat, points, radius)
        if plane is not None:
            whole = torch.zeros(size, dtype=torch.bool)
            whole.select(plane[0], min(max(plane[1], 0), size[plane[0]] - 1)).copy_(mask)
            mask = whole
        self._paint(viewer, number, brush, mask.view(size), value)

    def stamp(self, viewer: int, number: int, rle: str, at: tuple[int, int]) -> None:
        """Put a pattern of living cells onto the grid, its top left corner at a cell.

        Raises:
            ArgumentError: It is not RLE, or the model has no such cells.
        """
        names = [each.name for each in self.simulation.model.brushes()]
        if "cells" not in names or len(self.simulation.size) != 2:
            raise ArgumentError(
                f"{type(self.simulation.model).__name__} has no cells to put a pattern onto"
            )
        # The line end keeps a text that looks like a path from being read as one.
        cells = read_rle(rle + "\n").cells
        height, width = self.simulation.size
        if cells.shape[0] > height or cells.shape[1] > width:
            raise ArgumentError(
                f"the pattern is {cells.shape[0]} x {cells.shape[1]} and does not fit into "
                f"{height} x {width}"
            )
        mask = torch.zeros(height, width, dtype=torch.bool)
        mask[: cells.shape[0], : cells.shape[1]] = cells.bool()
        self._paint(viewer, number, "cells", mask.roll(at, (0, 1)), 1.0)

    def undo(self) -> bool:
        """Take the last stroke back; false where there is none."""
        return self._swap(self._done, self._undone)

    def redo(self) -> bool:
        """Make the last stroke again that was taken back; false where there is none."""
        return self._swap(self._undone, self._done)

    def forget(self) -> None:
        """Forget all strokes, as after a reset."""
        self._done.clear()
        self._undone.clear()

    def expect_held(self, value: float, *kinds: torch.dtype) -> None:
        """Refuse a number that the type cannot hold."""
        for kind in kinds:
            limits = torch.finfo(kind) if kind.is_floating_point else torch.iinfo(kind)
            if not limits.min <= value <= limits.max:
                name = str(kind).removeprefix("torch.")
                raise ArgumentError(
                    f"the value must be from {limits.min:g} to {limits.max:g}, which {name} "
                    f"can hold, got {value:g}"
                )

    def _expect_possible(self, brush: str, value: float) -> None:
        """Refuse a value that would fail in the middle of painting, and stop the run."""
        setting, model = self.control.setting, self.simulation.model
        for each in model.brushes():
            if each.name == brush and each.kind == "states":
                if not (each.low <= value <= each.high and value.is_integer()):
                    raise ArgumentError(
                        f"the value must be a whole number from {each.low:g} to "
                        f"{each.high:g}, got {value:g}"
                    )
            elif each.name == brush:
                kinds = {x.name: setting.kept_as(x) for x in setting.model.fields}
                floats = [kind for kind in kinds.values() if kind.is_floating_point]
                self.expect_held(value, *([kinds[brush]] if brush in kinds else floats))

    def _paint(self, viewer: int, number: int, brush: str, mask: Tensor, value: float) -> None:
        self._expect_possible(brush, value)
        last = self._done[-1] if self._done else None
        if last is None or (last.viewer, last.number) != (viewer, number):
            before = self._present(viewer, number)
            self.simulation.paint(brush, mask, value)
            self._done.append(before)
            self._undone.clear()
        else:
            self.simulation.paint(brush, mask, value)
        while len(self._done) > 1 and (
            len(self._done) > _MOST or sum(each.bytes for each in self._done) > _MEMORY
        ):
            self._done.popleft()

    def _present(self, viewer: int, number: int) -> _Done:
        return _Done(number, viewer, self.control.moment())

    def _swap(self, source: Any, target: Any) -> bool:
        if not source:
            return False
        found: _Done = source.pop()
        target.append(self._present(found.viewer, found.number))
        self.control.return_to(found.before)
        return True


def disc_mask(size: Sequence[int], points: Sequence[Sequence[float]], radius: float) -> Tensor:
    """Cells whose centres are within a radius of a line through points, bool `[*size]`.

    At least the cells that hold the points themselves.
    """
    height, width = size
    # NumPy: masks are small, and waking the threads of torch would take longer.
    mask = np.zeros((height, width), dtype=bool)
    pairs = zip(points, [*points[1:], points[-1]], strict=True)
    for (y, x), (v, u) in pairs:
        for a, b in ((y, x), (v, u)):
            if 0 <= a < height and 0 <= b < width:
                mask[int(a), int(b)] = True
        rows = slice(max(0, int(min(y, v) - radius - 1)), max(0, int(max(y, v) + radius + 2)))
        columns = slice(
            max(0, int(min(x, u) - radius - 1)), max(0, int(max(x, u) + radius + 2))
        )
        part = mask[rows, columns]
        if not part.size:
            continue
        cy = np.arange(part.shape[0])[:, None] + (rows.start + 0.5)
        cx = np.arange(part.shape[1])[None] + (columns.start + 0.5)
        dy, dx = v - y, u - x
        along = ((cy - y) * dy + (cx - x) * dx) / (dy * dy + dx * dx or 1.0)
        along = along.clip(0, 1)
        part |= (cy - y - along * dy) ** 2 + (cx - x - along * dx) ** 2 <= radius * radius
    return torch.from_numpy(mask)
