"""Larger than Life: a cell counts all cells within several steps of it."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hotgrid.grid.model import Neighbours, Planes

from ._box_sums import BoxSumForm
from ._cells import CellModel
from ._generations import aged
from ._life import own_rule
from ._patterns import Pattern, find_pattern
from ._rules import TOPOLOGIES, LargerRule, Topology, parted


class LargerThanLife(CellModel):
    """Two-state and aging automata with neighbourhoods of a large radius, such as Evans' bugs.

    Over a box, whole grids are added up along rows and then along columns, in a form of its
    own, `box_sums`; other neighbourhoods, and grids that are cut over ranks, cell by cell.

    Arguments:
        rule: A rule as `LargerRule.parse` reads it; by default that of the pattern, else
            `R5,C0,M1,S34..58,B34..45,NM`, known as Bosco's rule.
        topology: How the edges are joined, as for `Life`.
        pattern: The pattern in the middle at the start, as for `Life`.
        density: The share of living cells of a random start.

    Example:
        >>> LargerThanLife("bugsmovie").radius
        10

    Raises:
        ArgumentError: An argument is wrong; the message names it.
    """

    def __init__(
        self,
        rule: str | LargerRule | None = None,
        *,
        topology: Topology | None = None,
        pattern: str | Path | Pattern | None = None,
        density: float = 0.5,
    ) -> None:
        found = None if pattern is None else find_pattern(pattern)
        if rule is None:
            rule = own_rule(found, LargerRule) or "bosco"
        text, bounds = parted(rule) if isinstance(rule, str) else ("", None)
        self.rule = rule if isinstance(rule, LargerRule) else LargerRule.parse(text)
        self.states, self.radius = self.rule.states, self.rule.radius
        self.picture = "alive" if self.states == 2 else "cells"
        self.topologies = tuple(TOPOLOGIES)
        super().__init__(topology, density, bounds=bounds, pattern=found)

    def own_forms(self) -> Sequence[type[Any]]:
        """Sums along rows and columns, where the neighbourhood is a box."""
        return (BoxSumForm,) if self.rule.area == "box" else ()

    @property
    def _beyond(self) -> int:
        """The smallest count that no cell has: it stands for every larger one in a rule."""
        return self.rule.most + 1

    def living(self, cells: Tensor) -> Tensor:
        """1 where a cell counts, in a type that holds every count."""
        kind = torch.uint8 if self._beyond < 256 else torch.int16
        return (cells if self.states == 2 else cells == 1).to(kind)

    def ruled(self, cell: Tensor, n: Tensor) -> Tensor:
        """The next cells, from the present ones and their counts."""
        born, stays = (
            (n.clamp(min(low, self._beyond), min(high, self._beyond)) == n).to(torch.uint8)
            for low, high in (self.rule.birth, self.rule.survival)
        )
        # Bytes, because a choice between truth values leaves the vector unit.
        alive = cell if self.states == 2 else (cell == 1).to(torch.uint8)
        return aged(cell, born ^ (alive & (born ^ stays)), self.states)

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """One generation."""
        cells = state["cells"]
        n = reduce(add, [self.living(cells[offset]) for offset in self.rule.offsets()])
        return {"cells": self.ruled(cells.here, n)}
