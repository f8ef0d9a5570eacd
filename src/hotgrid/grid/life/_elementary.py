"""Elementary automata: a line of cells, each of which sees itself and two neighbours."""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.model import Model, Neighbours, Planes, whole_number

from ._cells import CellModel
from ._words import CELLS_PER_WORD, PackedWindow


class Elementary(CellModel):
    """The 256 elementary automata, by Wolfram's number.

    In one dim the grid is the line. In two dims every row is a line of its own; at the start
    each is one generation after the row above, so the grid shows space across and time
    downwards, and scrolls up by a row each step.

    Arguments:
        rule: Wolfram's number, from 0 to 255, or as text: `110`, `W110`.
        topology: `"torus"` joins the ends of a line; a `"plane"` has dead cells beyond them.
        start: `"cell"` is one living cell in the middle, `"random"` is `density` of them.
        packed: Whether 32 cells share a word, where the columns are a multiple of 32.
        density: The share of living cells of a random start.

    Example:
        >>> Elementary("W30").rule
        30

    Raises:
        ArgumentError: An argument is wrong; the message names it.
    """

    ranks = (1, 2)
    size = (256, 512)

    def __init__(
        self,
        rule: int | str = 110,
        *,
        topology: Literal["torus", "plane"] = "torus",
        start: Literal["cell", "random"] = "random",
        packed: bool = True,
        density: float = 0.5,
    ) -> None:
        super().__init__(topology, density)
        self.rule = _number(rule)
        if start not in ("cell", "random"):
            raise ArgumentError(f"`start` must be `cell` or `random`, got {start!r}")
        self.start, self.packed = start, packed

    def faster(self, size: tuple[int, ...]) -> Model:
        """The model on words of 32 cells, if the columns allow it."""
        if not self.packed or size[-1] % CELLS_PER_WORD:
            return self
        # The left cell is the highest bit of Wolfram's number and the lowest of a window.
        table = [bool(self.rule >> (w >> 2 | w & 2 | (w & 1) << 2) & 1) for w in range(8)]
        return PackedWindow(table, self.boundary, rows=((0,) * (len(size) - 1),))

    def first_cells(self, size: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """The first line, and in two dims the generations that follow it."""
        line = torch.zeros(size[-1], dtype=torch.uint8)
        if self.start == "cell":
            line[size[-1] // 2] = 1
        else:
            line = (torch.rand(size[-1], generator=generator) < self.density).to(torch.uint8)
        if len(size) == 1:
            return line
        rows = [line]
        for _ in range(size[0] - 1):
            beside = torch.nn.functional.pad(rows[-1], (1, 1))
            if self.topology == "torus":
                beside[0], beside[-1] = rows[-1][-1], rows[-1][0]
            rows.append(self._next(beside[:-2], rows[-1], beside[2:]))
        return torch.stack(rows)

    def _next(self, left: Tensor, cell: Tensor, right: Tensor) -> Tensor:
        place = left << 2 | cell << 1 | right
        return torch.full_like(place, self.rule) >> place & 1

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """One generation of every line."""
        cells = state["cells"]
        across = [cells[(0,) * (cells.rank - 1) + (x,)] for x in (-1, 0, 1)]
        return {"cells": self._next(*across)}


def _number(rule: object) -> int:
    text = str(rule).strip()
    if isinstance(rule, str) and text[:1] in ("W", "w"):
        text = text[1:]
    if isinstance(rule, str) and text.isdecimal():
        rule = int(text)
    found = whole_number("rule", rule, 0)
    if found > 255:
        raise ArgumentError(f"`rule` must be a number of Wolfram's, from 0 to 255, got {found}")
    return found
