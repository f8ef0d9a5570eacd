"""The base of lattice gases: a bit for each direction, exact sums, and a smooth density."""

import math
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import ClassVar, Literal

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.model import (
    Brush,
    Field,
    Model,
    Parameter,
    State,
    observable,
    places,
    total,
    uniform,
    view,
    window_shape,
)

Start = Literal["pulse", "uniform"]
# Cells on each side of a cell over which the view of the density takes the mean.
_SMOOTH = 4


class LatticeGas(Model):
    """Particles on a torus; bit `i` of the field `particles` is one that flies along `i`.

    At most one particle of a cell flies along a direction. Number and momentum are conserved
    by every step, exactly.

    Arguments:
        density: The share of directions that are taken at the start.
        start: `"pulse"` has a dense disc in the middle, `"uniform"` has none.
    """

    differentiable = False
    windowed = True
    picture = "mean"
    conserved = ("mass", "momentum_x", "momentum_y")
    velocities: Sequence[tuple[int, int]] = ()
    """Columns and rows that a particle flies in a step, in `units`."""
    units: ClassVar[tuple[float, float]] = (1.0, 1.0)

    def __init__(self, density: float, start: Start) -> None:
        super().__init__()
        share = Parameter(0.2, "the share of directions that are taken", low=0, high=1)
        self.density = share.checked("density", density)
        if start not in ("pulse", "uniform"):
            raise ArgumentError(f"`start` must be `pulse` or `uniform`, got {start!r}")
        self.start: Start = start
        self.fields = (Field("particles", dtype=torch.uint8),)

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """Particles at random, more of them in the disc of a pulse."""
        taken = torch.full(window_shape(size), self.density)
        if self.start == "pulse":
            y, x = (x - n / 2 for x, n in zip(places(size), size, strict=True))
            inside = torch.hypot(y[:, None], x) < min(size) / 10
            taken[inside] = (1 + self.density) / 2
        particles = torch.zeros(taken.shape, dtype=torch.uint8)
        for bit in range(len(self.velocities)):
            there = uniform(size, generator) < taken
            particles |= there.to(torch.uint8) << bit
        return {"particles": particles}

    def initial_bytes(self, size: tuple[int, ...]) -> int:
        """A few floats for each cell."""
        return 24 * math.prod(size)

    def brushes(self) -> Sequence[Brush]:
        """Cells that are full, or empty."""
        full = 2 ** len(self.velocities) - 1
        return (Brush("particles", "Particles", "states", high=full, value=full),)

    def reach_of(self, view: str) -> int | None:
        """Means are taken over a box."""
        return _SMOOTH if view == "mean" else 0

    @view
    def mean(self, state: State) -> Tensor:
        """Particles in a cell, as the mean over a box of 9 x 9 cells."""
        x, near_by = self.count(state).float(), range(-_SMOOTH, _SMOOTH + 1)
        for dim in (-1, -2):
            x = reduce(add, [x.roll(o, dim) for o in near_by]) / len(near_by)
        return x

    @view
    def count(self, state: State) -> Tensor:
        """The number of particles in each cell."""
        return reduce(add, self._there(state["particles"]))

    @observable(over="sum")
    def mass(self, state: State) -> Tensor:
        """The number of particles."""
        return total(self.count(state))

    @observable(over="sum")
    def momentum_x(self, state: State) -> Tensor:
        """The momentum along the columns."""
        return self._momentum(state, 0)

    @observable(over="sum")
    def momentum_y(self, state: State) -> Tensor:
        """The momentum along the rows, downwards."""
        return self._momentum(state, 1)

    def _there(self, particles: Tensor) -> list[Tensor]:
        """For every direction 1 where a particle flies along it, uint8."""
        return [particles >> bit & 1 for bit in range(len(self.velocities))]

    def _momentum(self, state: State, axis: int) -> Tensor:
        parts = zip(self._there(state["particles"]), self.velocities, strict=True)
        return reduce(add, [v[axis] * total(there) for there, v in parts]) * self.units[axis]
