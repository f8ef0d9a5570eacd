"""What the automata of this package share: cells that are 0 or 1, and how they start."""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, near
from hotgrid.grid.model import (
    Brush,
    Field,
    Model,
    Neighbours,
    Parameter,
    State,
    next_random,
    observable,
    random_numbers,
    total,
    view,
)

from ._noise import flipped, numbers_that_flip

Topology = Literal["torus", "plane"]


class CellModel(Model):
    """A model whose field `cells` is uint8 `[*space]`: 1 is alive, 0 is dead.

    With noise it has a field `random` too.

    Arguments:
        topology: `"torus"` joins the ends; a `"plane"` is surrounded by dead cells.
        density: The share of living cells at the start.
        noise: The probability with which a step turns a cell over.
    """

    differentiable = False
    picture = "alive"

    def __init__(self, topology: Topology, density: float, noise: float = 0.0) -> None:
        super().__init__()
        known = ("torus", "plane")
        if topology not in known:
            raise ArgumentError(
                f"`topology` {topology!r} is unknown; use `torus` (the ends are joined) or "
                f"`plane` (surrounded by dead cells){near(topology, known)}"
            )
        share = Parameter(0.3, "the share of living cells at the start", low=0, high=1)
        self.topology: Topology = topology
        self.density = share.checked("density", density)
        chance = Parameter(0.0, "the probability that a step turns a cell over", low=0, high=1)
        self.noise = chance.checked("noise", noise)
        self._flips = numbers_that_flip(self.noise)
        self.fields = (Field("cells", dtype=torch.uint8, outside=self.outside),)
        if self._flips:
            random = Field("random", dtype=torch.int32, outside=self.outside)
            self.fields = (*self.fields, random)

    @property
    def outside(self) -> int | None:
        """The value of `Field.outside`."""
        return None if self.topology == "torus" else 0

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """The first cells, random numbers where there is noise, and zeros."""
        state = {"cells": self.first_cells(size, generator)}
        if self._flips:
            state["random"] = random_numbers(size, generator)
        others = [field for field in self.fields if field.name not in state]
        return {**state, **{f.name: torch.zeros(size, dtype=f.dtype) for f in others}}

    def initial_bytes(self, size: tuple[int, ...]) -> int:
        """Cells are drawn row by row, random numbers all at once."""
        cell = sum((field.dtype or torch.uint8).itemsize for field in self.fields)
        return math.prod(size) * (cell + (5 if self._flips else 0))

    def first_cells(self, size: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Cells alive at random, `density` of them, uint8 `[*size]`."""
        cells = torch.zeros(size, dtype=torch.uint8)
        # Row by row, because the random numbers take four bytes a cell.
        for row in cells:
            row.copy_(torch.rand(row.shape, generator=generator) < self.density)
        return cells

    def with_noise(self, after: Tensor, state: Mapping[str, Neighbours]) -> dict[str, Tensor]:
        """What a step returns, from what the rule gave, uint8 `[*space]`."""
        if not self._flips:
            return {"cells": after}
        random = next_random(state["random"].here)
        return {"cells": flipped(after, random, self._flips), "random": random}

    def stored(self, state: State) -> State:
        """Cells as they are stored: everything nonzero is alive."""
        return {name: x != 0 if name == "cells" else x for name, x in state.items()}

    def cells(self, state: State) -> Tensor:
        """The cells, uint8 `[*space]`: 1 is alive."""
        return state["cells"]

    def reach_of(self, view: str) -> int | None:
        """A cell is seen by itself."""
        return 0

    def brushes(self) -> Sequence[Brush]:
        """Living cells, and dead ones."""
        return (Brush("cells", "Cells", "states"),)

    @view
    def alive(self, state: State) -> Tensor:
        """The cells, `[*space]`: 1 is alive."""
        return state["cells"]

    @observable
    def population(self, state: State) -> Tensor:
        """The number of living cells."""
        return total(state["cells"])
