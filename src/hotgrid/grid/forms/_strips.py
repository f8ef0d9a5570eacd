"""Strips of rows, one thread for a column of each: the form of light models on a GPU.

If a step reads one plane in several rows, whole-array shifts read each of them
from the L2 cache again, and that is their limit: heat stays at 85 % of copy. A thread
that computes several rows reads them once, and shares what their results have in common.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from hotgrid.grid.model import Field, Input, Look

from ._form import NOT_PHASED, Setting, compile_step, planes_of
from ._roll import shifting
from ._two_buffers import Looks, TwoBufferForm, Views, writing_step
from .kernel._planes import without_stacks

# A cell's numbers in several rows must fit into registers.
_MOST_NUMBERS = 3


class StripForm(TwoBufferForm):
    """The grid in strips: all first rows of a strip, all second rows, and so on."""

    name = "strips"

    def __init__(self, setting: Setting, rows: int | None = None) -> None:
        self.rows = rows or _rows_together(setting)
        super().__init__(setting, (0,) * setting.rank)
        self._outs = [self._views(buffers) for buffers in self._buffers]
        self._fixed = [setting.inputs[known.name] for known in setting.model.inputs]
        self._writing = writing_step(setting, self._looks())
        self._step = compile_step(self._writing, setting)
        self._begun = False

    @staticmethod
    def obstacle(setting: Setting) -> str:
        """The rows must divide evenly into strips."""
        if setting.phased:
            return NOT_PHASED
        for field in setting.model.fields:
            named = [face for face in field.faces(setting.rank)[0] if isinstance(face, str)]
            if any(face != "periodic" for face in named):
                return f"the first axis of the field `{field.name}` has the boundary {named[0]}"
        if _rows_together(setting) > 1:
            return ""
        return f"it needs an even number of rows, got {setting.size[0]}"

    @staticmethod
    def drawback(setting: Setting) -> str:
        """It is for light models on a GPU."""
        if not setting.compiled or setting.device.type != "cuda":
            return "it gains only where steps are compiled for a GPU"
        if setting.model.radius == 0:
            return "a step reads one row only, so that rows have nothing to share"
        numbers = sum(field.components for field in setting.model.fields)
        if numbers > _MOST_NUMBERS:
            return f"{numbers} numbers a cell do not fit into registers for several rows"
        return ""

    def advance(self, steps: int) -> None:
        """Advance by a number of steps."""
        if not self._begun:
            self._take_apart()
        with torch.no_grad():
            for _ in range(steps):
                old, new = self._now, 1 - self._now
                self._step(self._buffers[old], self._outs[new], self._fixed, self._params)
                self._now = new

    def _take_apart(self) -> None:
        """Compile the step plane by plane if it stacks planes; see `RollForm`."""
        self._begun, setting = True, self.setting
        if setting.compiled and setting.device.type == "cuda":
            given = (self._buffers[0], self._outs[1], self._fixed, self._params)
            apart = without_stacks(self._writing, *given, len(setting.batch))
            if apart is not None:
                self._step = compile_step(apart, setting)

    def _looks(self) -> list[Looks]:
        kinds = (*self.setting.model.fields, *self.setting.model.inputs)
        return [
            {kind.name: _strided(kind, row, self.rows) for kind in kinds}
            for row in range(self.rows)
        ]

    def _views(self, buffers: Sequence[Tensor]) -> Views:
        """One row of every strip."""
        rank = self.setting.rank
        return [
            [
                [_row_of_strips(x, row, self.rows, rank) for x in planes_of(buffer, rank)]
                for buffer in buffers
            ]
            for row in range(self.rows)
        ]


def _rows_together(setting: Setting) -> int:
    """The rows of a strip; measured best are 8 for one number a cell and 4 for two."""
    wanted = (8, 4, 2) if len(setting.model.fields) == 1 else (4, 2)
    return next((rows for rows in wanted if setting.size[0] % rows == 0), 1)


def _row_of_strips(plane: Tensor, row: int, rows: int, rank: int) -> Tensor:
    return plane.unflatten(-rank, (-1, rows)).select(-rank, row)


def _strided(kind: Field | Input, row: int, rows: int) -> Look:
    """Look from one row of every strip."""
    look_along = shifting(kind)

    def look(plane: Tensor, offset: tuple[int, ...]) -> Tensor:
        strips, place = divmod(row + offset[0], rows)
        seen = _row_of_strips(plane, place, rows, len(offset))
        return look_along(seen, (strips, *offset[1:]))

    return look
