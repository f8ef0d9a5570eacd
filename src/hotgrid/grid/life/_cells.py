"""The base of the automata of this package: cells, edges, and initial states."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

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
    drawn,
    next_random,
    observable,
    random_numbers,
    total,
    view,
    window_shape,
)

from ._covered import Covered, covering_size
from ._noise import flipped, numbers_that_flip
from ._patterns import Pattern
from ._rules import TOPOLOGIES, Bounds, Topology


class CellModel(Model):
    """A model whose field `cells` is uint8 `[*space]`: 1 is alive, 0 is dead.

    With more than two states, the others are neither. With noise it has a field `random` too.

    Arguments:
        topology: How the edges are joined; by default as the bounds say, else `"torus"`.
        density: The share of living cells at the start.
        noise: The probability with which a step turns a cell over.
        bounds: The bounds that a rule has; the grid must have their size.
        pattern: The cells to start with, in the middle; by default random ones.
    """

    differentiable = False
    windowed = True
    makers = (*Model.makers, "first_cells")
    picture = "alive"
    states = 2
    """The number of states of a cell."""
    topologies: Sequence[Topology] = ("torus", "plane")
    """The ways to join the ends that the model knows."""
    pattern: Pattern | None = None

    def __init__(
        self,
        topology: Topology | None,
        density: float,
        noise: float = 0.0,
        *,
        bounds: Bounds | None = None,
        pattern: Pattern | None = None,
    ) -> None:
        super().__init__()
        self.pattern = pattern
        self._bounds = bounds
        given = bounds or (pattern and pattern.bounds)
        if given:
            self.size = given.size
            if bounds and topology not in (None, bounds.topology):
                raise ArgumentError(
                    f"`topology` is {topology!r}, but the rule ends in `:{bounds}`, which is "
                    f"{bounds.topology}; leave one of them out"
                )
        self._expect_states(pattern)
        topology = topology or (given.topology if given else "torus")
        self._expect_topology(topology)
        share = Parameter(0.3, "the share of living cells at the start", low=0, high=1)
        self.topology: Topology = topology
        self.density = share.checked("density", density)
        chance = Parameter(0.0, "the probability that a step turns a cell over", low=0, high=1)
        self.noise = chance.checked("noise", noise)
        self._flips = numbers_that_flip(self.noise)
        self.fields = (Field("cells", dtype=torch.uint8, boundary=self.boundary),)
        if self._flips:
            random = Field("random", dtype=torch.int32, boundary=self.boundary)
            self.fields = (*self.fields, random)

    def _expect_states(self, pattern: Pattern | None) -> None:
        highest = int(pattern.cells.max()) if pattern and pattern.cells.numel() else 0
        if pattern and highest >= self.states:
            raise ArgumentError(
                f"the pattern {pattern.name or 'without a name'} has cells of the state "
                f"{highest}, but this automaton has the states 0 to {self.states - 1}; choose "
                "another model or rule"
            )

    def _expect_topology(self, topology: Topology) -> None:
        if topology not in self.topologies:
            what = "is unknown"
            if topology in TOPOLOGIES:
                what = f"is not one of {type(self).__name__}"
            known = [f"`{name}` ({TOPOLOGIES[name]})" for name in self.topologies]
            raise ArgumentError(
                f"`topology` {topology!r} {what}; use {', '.join(known[:-1])} or {known[-1]}"
                f"{near(topology, self.topologies)}"
            )

    def check(self, size: tuple[int, ...]) -> None:
        """Refuse a grid that is not that of the bounds, and a sphere that is not square."""
        if self._bounds and size != self._bounds.size:
            raise ArgumentError(
                f"the rule ends in `:{self._bounds}`, a grid of {self._bounds.size}, but "
                f"`size` is {size}; leave out `size`, or the bounds"
            )
        if self.topology == "sphere" and len(set(size)) > 1:
            raise ArgumentError(f"a sphere needs a square grid, got {size}")

    def fitted(self, size: tuple[int, ...]) -> Model:
        """The model that runs a grid of this size; see `faster`."""
        inner = self.faster(covering_size(self.topology, size))
        if self.topology in ("torus", "plane"):
            return inner
        return Covered(inner, self.topology)

    def faster(self, size: tuple[int, ...]) -> Model:
        """An equivalent model that is faster on a torus or plane of this size, or this one."""
        return self

    @property
    def boundary(self) -> float | str:
        """That of `Field`."""
        return 0 if self.topology == "plane" else "periodic"

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """The first cells, random numbers where there is noise, and zeros."""
        state = {"cells": self.first_cells(size, generator)}
        if self._flips:
            state["random"] = random_numbers(size, generator)
        others = [field for field in self.fields if field.name not in state]
        cells = window_shape(size)
        return {**state, **{f.name: torch.zeros(cells, dtype=f.dtype) for f in others}}

    def initial_bytes(self, size: tuple[int, ...]) -> int:
        """Cells are drawn some rows at a time, random numbers all at once."""
        cell = sum((field.dtype or torch.uint8).itemsize for field in self.fields)
        return math.prod(size) * (cell + (5 if self._flips else 0))

    def first_cells(self, size: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """The pattern in the middle, or cells alive at random, uint8 `[*size]`."""
        if self.pattern is not None:
            return self.pattern.placed(size)

        def alive(shape: tuple[int, ...]) -> Tensor:
            return (torch.rand(shape, generator=generator) < self.density).to(torch.uint8)

        return drawn(size, alive)

    def with_noise(self, after: Tensor, state: Mapping[str, Neighbours]) -> dict[str, Tensor]:
        """The result of a step, from that of the rule, uint8 `[*space]`."""
        if not self._flips:
            return {"cells": after}
        random = next_random(state["random"].here)
        return {"cells": flipped(after, random, self._flips), "random": random}

    def stored(self, state: State) -> State:
        """Cells as they are stored: of two states, everything nonzero is alive.

        Of more states, what is above the last one is the last one.
        """
        known = {**state}
        if "cells" in known:
            cells = known["cells"]
            known["cells"] = cells != 0 if self.states == 2 else cells.clamp(0, self.states - 1)
        return known

    def cells(self, state: State) -> Tensor:
        """The cells, uint8 `[*space]`: 1 is alive."""
        return state["cells"]

    @classmethod
    def names_file(cls, option: str, value: str) -> bool:
        """A pattern has a name, or is in a file."""
        return option == "pattern" and Path(value).suffix in (".rle", ".cells")

    def reach_of(self, view: str) -> int | None:
        """A cell is seen by itself."""
        return 0

    def brushes(self) -> Sequence[Brush]:
        """Living cells, and dead ones; or a state by its number."""
        if self.states > 2:
            return (Brush("cells", "State", "states", high=self.states - 1),)
        return (Brush("cells", "Cells", "states"),)

    @view
    def alive(self, state: State) -> Tensor:
        """The cells, `[*space]`: 1 is alive."""
        return state["cells"] if self.states == 2 else (state["cells"] == 1).to(torch.uint8)

    @observable(over="sum")
    def population(self, state: State) -> Tensor:
        """The number of living cells."""
        return total(self.alive(state))
