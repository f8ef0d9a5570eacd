"""Wireworld: electrons that run along wires, and gates made of wire."""

from collections.abc import Mapping
from functools import reduce
from itertools import product
from operator import add
from pathlib import Path

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.model import Neighbours, Planes

from ._cells import CellModel
from ._patterns import Pattern, find_pattern
from ._rules import TOPOLOGIES, Topology


class Wireworld(CellModel):
    """Silverman's Wireworld: 0 is empty, 1 the head and 2 the tail of an electron, 3 wire.

    A head becomes a tail, a tail becomes wire, and wire becomes a head if one or two of its
    eight neighbours are heads. The observable `population` counts heads.

    Arguments:
        pattern: The circuit in the middle at the start: by name, a file in RLE, or itself; by
            default an XOR gate fed by two clocks.
        topology: How the edges are joined, as for `Life`.

    Example:
        >>> Wireworld().states
        4

    Raises:
        ArgumentError: An argument is wrong; the message names it.
    """

    states = 4
    picture = "cells"
    size = (24, 72)
    topologies = tuple(TOPOLOGIES)

    def __init__(
        self,
        pattern: str | Path | Pattern = "wireworld xor",
        *,
        topology: Topology | None = None,
    ) -> None:
        found = find_pattern(pattern)
        if found.rule is not None and not isinstance(found.rule, str):
            raise ArgumentError(
                f"the pattern {found.name or 'without a name'} was made for the rule "
                f"{found.rule}, which Wireworld does not run; choose another pattern or model"
            )
        super().__init__(topology, 0.0, pattern=found)

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """One generation."""
        cells, around = state["cells"], [o for o in product((-1, 0, 1), repeat=2) if any(o)]
        heads = reduce(add, [(cells[offset] == 1).to(torch.uint8) for offset in around])
        cell = cells.here
        wire = torch.where((heads == 1) | (heads == 2), 1, cell)
        moved = torch.where(cell == 0, 0, cell + 1)
        return {"cells": torch.where(cell == 3, wire, moved)}
