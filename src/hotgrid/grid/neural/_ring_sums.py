"""Lenia on whole grids: sums over rings of neighbours, taken one after the other.

A step of 516 neighbours is too long to compile: torch needs minutes for it. Here each is one
addition in place on a view of the grid with a margin, in the order of the step, so the bits
are the same.
"""

from typing import Any

import torch
from torch import Tensor

from hotgrid.grid.forms import Form, Setting
from hotgrid.grid.model import State


class RingSumForm(Form):
    """Additions of whole shifted grids, into buffers that stay."""

    name = "ring_sums"
    leaves_old = True
    live_params = True

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._cells = torch.empty(0)

    @property
    def compiled(self) -> bool:
        """Its steps are torch's own additions."""
        return False

    @staticmethod
    def obstacle(setting: Setting) -> str:
        """The margin is taken from the other end of the grid at once."""
        if min(setting.size) < setting.model.radius:
            return f"a radius of {setting.model.radius} is larger than the grid {setting.size}"
        if setting.storage != setting.dtype:
            return "it keeps cells in the type of arithmetic"
        return ""

    def load(self, state: State) -> None:
        """Take over a state; no step writes into it."""
        self._cells = state["cells"]

    def read(self) -> State:
        """The present cells, `[*batch, 1, rows, columns]`."""
        return {"cells": self._cells}

    def advance(self, steps: int) -> None:
        """Advance by a number of steps."""
        model: Any = self.setting.model
        with torch.no_grad():
            for _ in range(steps):
                mean = self._mean(self._cells, model)
                self._cells = model.grown(self._cells, mean, self.setting.params)

    def _margin(self, model: Any) -> int:
        """How far the sums reach."""
        return model.radius

    def _mean(self, cells: Tensor, model: Any) -> Tensor:
        margin = self._margin(model)
        wide = torch.cat([cells[..., -margin:, :], cells, cells[..., :margin, :]], -2)
        wide = torch.cat([wide[..., -margin:], wide, wide[..., :margin]], -1)
        rows, columns = cells.shape[-2:]
        mean: Tensor | None = None
        for weight, offsets in model.rings:
            seen = [
                wide[..., margin + y : margin + y + rows, margin + x : margin + x + columns]
                for y, x in offsets
            ]
            part = seen[0] + seen[1]
            for each in seen[2:]:
                part += each
            part *= weight
            mean = part if mean is None else mean.add_(part)
        assert mean is not None  # noqa: S101  a neighbourhood has rings
        return mean
