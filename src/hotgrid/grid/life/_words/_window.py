"""Any two-state rule of a window of 3 cells a side, on words of 32 cells.

The table of the rule becomes a decision diagram: parts of it that are equal are computed
once, and cells that do not matter are not looked at.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from hotgrid.grid.model import FieldBoundary, Neighbours, Planes

from ._packed import WordModel, three_across


class PackedWindow(WordModel):
    """A table of all windows, on words of 32 cells.

    Arguments:
        table: The next cell for each window; bit `3 y + x` of the place is a cell.
        boundary: As in `Field`.
        rows: The rows of the window, as offsets along all dims but the last.
    """

    def __init__(
        self,
        table: Sequence[bool],
        boundary: FieldBoundary,
        rows: Sequence[tuple[int, ...]] = ((-1,), (0,), (1,)),
    ) -> None:
        super().__init__(boundary)
        self.table = tuple(map(bool, table))
        self._rows = tuple(rows)

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """One generation."""
        words = state["cells"]
        cells = [bit for row in self._rows for bit in three_across(words, row)]
        known: dict[tuple[bool, ...], Tensor | bool] = {}
        # The last cell is the highest bit of a place.
        after = _decided(self.table, cells[::-1], known)
        if isinstance(after, bool):
            after = torch.full_like(words.here, -after)
        return {"cells": after}


def _decided(
    table: tuple[bool, ...],
    bits: Sequence[Tensor],
    known: dict[tuple[bool, ...], Tensor | bool],
) -> Tensor | bool:
    """The entry of a table at the place that bits spell, highest bit first."""
    if len(set(table)) == 1:
        return table[0]
    if table in known:
        return known[table]
    half = len(table) // 2
    off, on, bit = table[:half], table[half:], bits[0]
    a, b = _decided(off, bits[1:], known), _decided(on, bits[1:], known)
    if off == on:
        found = a
    elif isinstance(a, bool):
        found = (~bit if a else bit) if isinstance(b, bool) else (~bit | b if a else bit & b)
    elif isinstance(b, bool):
        found = bit | a if b else ~bit & a
    elif off == tuple(not each for each in on):
        found = a ^ bit
    else:
        found = a ^ (bit & (a ^ b))
    known[table] = found
    return found
