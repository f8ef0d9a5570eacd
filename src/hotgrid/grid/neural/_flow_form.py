"""Flow Lenia on whole grids: growth, flows and what arrives, one after the other.

A step of a model reads cells alone, so it makes the growth around every cell again for each
neighbour that needs it. Here it is made once; each sum has the order of the step, so the bits
are the same.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ._ring_sums import RingSumForm


class FlowForm(RingSumForm):
    """Ring sums, then shifts of whole planes."""

    name = "flow_sums"

    def advance(self, steps: int) -> None:
        """Advance by a number of steps."""
        model: Any = self.setting.model
        params = self.setting.params
        with torch.no_grad():
            for _ in range(steps):
                cells = self._cells
                growth = model.growth(self._mean(cells, model), params)
                matter, grown = _shifted(cells), _shifted(growth)
                y, x = (_shifted(each) for each in model.flow(cells, grown, matter, params))
                flow: Any = _both(y, x)
                self._cells = model.arrived(matter, flow, params)

    def _margin(self, model: Any) -> int:
        """How far the sums reach."""
        return model.kernel


def _shifted(plane: Tensor) -> Callable[[tuple[int, int]], Tensor]:
    def look(at: tuple[int, int]) -> Tensor:
        moved = {dim: -o for dim, o in zip((-2, -1), at, strict=True) if o}
        return torch.roll(plane, list(moved.values()), list(moved)) if moved else plane

    return look


def _both(y: Any, x: Any) -> Callable[[tuple[int, int]], tuple[Tensor, Tensor]]:
    return lambda at: (y(at), x(at))
