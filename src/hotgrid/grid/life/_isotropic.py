"""Isotropic rules that look at how neighbours lie around a cell, not only at their number."""

from collections.abc import Mapping
from functools import reduce
from operator import or_
from pathlib import Path

import torch
from torch import Tensor

from hotgrid.grid.model import Model, Neighbours, Planes

from ._cells import CellModel
from ._life import own_rule
from ._lookup import looked_up
from ._patterns import Pattern, find_pattern
from ._rules import TOPOLOGIES, IsotropicRule, Topology, parted
from ._words import CELLS_PER_WORD, PackedWindow


class Isotropic(CellModel):
    """Two-state automata in Hensel's notation: the same in every direction, not totalistic.

    If the columns are a multiple of 32, a grid is stored and stepped as 32 cells per word.

    Arguments:
        rule: A rule as `IsotropicRule.parse` reads it; by default that of the pattern, else
            `B2-a/S12`, known as Just Friends.
        topology: How the edges are joined, as for `Life`.
        packed: Whether 32 cells share a word, where they can.
        pattern: The pattern in the middle at the start, as for `Life`.
        density: The share of living cells of a random start.

    Example:
        >>> str(Isotropic("tlife").rule)
        'B3/S2-i34q'

    Raises:
        ArgumentError: An argument is wrong; the message names it.
    """

    def __init__(
        self,
        rule: str | IsotropicRule | None = None,
        *,
        topology: Topology | None = None,
        packed: bool = True,
        pattern: str | Path | Pattern | None = None,
        density: float = 0.1,
    ) -> None:
        found = None if pattern is None else find_pattern(pattern)
        if rule is None:
            rule = own_rule(found, IsotropicRule) or "B2-a/S12"
        text, bounds = parted(rule) if isinstance(rule, str) else ("", None)
        self.rule = rule if isinstance(rule, IsotropicRule) else IsotropicRule.parse(text)
        self.packed = packed
        self._table = self.rule.table()
        self.topologies = tuple(TOPOLOGIES)
        super().__init__(topology, density, bounds=bounds, pattern=found)

    def faster(self, size: tuple[int, ...]) -> Model:
        """The model on words of 32 cells, if the columns allow it."""
        if not self.packed or size[-1] % CELLS_PER_WORD:
            return self
        return PackedWindow(self._table, self.boundary)

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """One generation."""
        cells = state["cells"]
        window = [cells[y, x].to(torch.int16) for y in (-1, 0, 1) for x in (-1, 0, 1)]
        place = reduce(or_, [cell << bit for bit, cell in enumerate(window)])
        return {"cells": looked_up(self._table, place)}
