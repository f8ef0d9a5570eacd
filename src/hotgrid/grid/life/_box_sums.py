"""Larger than Life over a box, on whole grids: sums along rows, then along columns.

A step of the model sees one cell and its neighbours, all of them: 441 for a radius of 10.
With the whole grid at hand, 2 x 21 additions are enough, and by doubling about ten.
"""

from typing import Any

import torch
from torch import Tensor

from hotgrid.grid.forms import Form, Setting
from hotgrid.grid.model import State

from ._covered import Covered


class BoxSumForm(Form):
    """Counts of a whole grid at once; the cells are those of every other form."""

    name = "box_sums"
    leaves_old = True

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._cells = torch.empty(0)

    @property
    def compiled(self) -> bool:
        """Compiled, it is no faster than torch's own additions of bytes."""
        return False

    @staticmethod
    def obstacle(setting: Setting) -> str:
        """Sums wrap around once, so the box must not be larger than the grid."""
        across = 2 * setting.model.radius + 1
        if min(setting.size) < across:
            return f"a box of {across} cells does not fit into {setting.size}"
        return ""

    def load(self, state: State) -> None:
        """Take over a state; no step writes into it."""
        self._cells = state["cells"]

    def read(self) -> State:
        """The present cells, `[*batch, 1, rows, columns]`."""
        return {"cells": self._cells}

    def advance(self, steps: int) -> None:
        """Advance by a number of generations."""
        given = self.setting.model
        model: Any = given.inner if isinstance(given, Covered) else given
        rule, torus = model.rule, model.fields[0].boundary == "periodic"
        for _ in range(steps):
            alive = model.living(self._cells)
            n = _box_sum(_widened(alive, rule.radius, torus), 2 * rule.radius + 1)
            self._cells = model.ruled(self._cells, n if rule.middle else n - alive)


def _widened(x: Tensor, by: int, torus: bool) -> Tensor:
    """Cells with as many around them as a box reaches."""
    wide = x.new_zeros((*x.shape[:-2], x.shape[-2] + 2 * by, x.shape[-1] + 2 * by))
    wide[..., by:-by, by:-by] = x
    if torus:
        wide[..., :by, by:-by], wide[..., -by:, by:-by] = x[..., -by:, :], x[..., :by, :]
        # Both ends of a row, now with the rows above and below.
        wide[..., :by], wide[..., -by:] = wide[..., -2 * by : -by], wide[..., by : 2 * by]
    return wide


def _box_sum(x: Tensor, across: int) -> Tensor:
    for dim in (-1, -2):
        x = _row_sum(x, across, dim)
    return x


def _row_sum(x: Tensor, across: int, dim: int) -> Tensor:
    """The sums of `across` numbers in a row; a dim shrinks by one less than that."""
    size = x.shape[dim] - across + 1
    # Sums of 1, 2, 4, ... numbers; together they make any number of them.
    total, at, wide = None, 0, 1
    while True:
        if across & wide:
            part = x.narrow(dim, at, size)
            total = part if total is None else total + part
            at += wide
        if 2 * wide > across:
            assert total is not None  # noqa: S101  `across` has a bit
            return total
        x = x.narrow(dim, 0, x.shape[dim] - wide) + x.narrow(dim, wide, x.shape[dim] - wide)
        wide *= 2
