"""Generations: cells that do not survive age before they are dead."""

from collections.abc import Mapping
from functools import reduce
from operator import add
from pathlib import Path

import torch
from torch import Tensor

from hotgrid.grid.model import Neighbours, Planes

from ._cells import CellModel
from ._life import decided, own_rule
from ._patterns import Pattern, find_pattern
from ._rules import TOPOLOGIES, GenerationsRule, Topology, parted


class Generations(CellModel):
    """Automata of several states: Brian's Brain, Star Wars and related rules.

    A cell of state 1 is alive. One that does not survive goes through the states 2, 3, ...
    In these it neither counts as a neighbour nor can be born, and then it is dead, 0.

    Arguments:
        rule: A rule as `GenerationsRule.parse` reads it; by default that of the pattern, else
            Star Wars, `B2/S345/C4`.
        topology: How the edges are joined, as for `Life`.
        pattern: The pattern in the middle at the start, as for `Life`.
        density: The share of living cells of a random start.

    Example:
        >>> Generations("345/2/4").states
        4

    Raises:
        ArgumentError: An argument is wrong; the message names it.
    """

    picture = "cells"

    def __init__(
        self,
        rule: str | GenerationsRule | None = None,
        *,
        topology: Topology | None = None,
        pattern: str | Path | Pattern | None = None,
        density: float = 0.3,
    ) -> None:
        found = None if pattern is None else find_pattern(pattern)
        if rule is None:
            rule = own_rule(found, GenerationsRule) or "B2/S345/C4"
        text, bounds = parted(rule) if isinstance(rule, str) else ("", None)
        self.rule = rule if isinstance(rule, GenerationsRule) else GenerationsRule.parse(text)
        self.states = self.rule.states
        if self.rule.neighbourhood != "hexagonal":
            self.topologies = tuple(TOPOLOGIES)
        super().__init__(topology, density, bounds=bounds, pattern=found)

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """One generation."""
        cells, rule = state["cells"], self.rule.rule
        n = reduce(add, [(cells[offset] == 1).to(torch.uint8) for offset in rule.offsets()])
        cell = cells.here
        lives = decided(n, (cell == 1).to(torch.uint8), rule)
        return {"cells": aged(cell, lives, self.states)}


def aged(cell: Tensor, lives: Tensor, states: int) -> Tensor:
    """The next state: alive where a cell is born or survives, else the next older one.

    Arguments:
        cell: The states, uint8.
        lives: 1 where the rule gives birth to a dead cell or keeps a living one alive, else 0.
        states: How many there are.
    """
    if states == 2:
        return lives
    older = torch.where(cell == states - 1, 0, cell + 1)
    return torch.where(cell > 1, older, torch.where(lives == 1, lives, older * (cell == 1)))
