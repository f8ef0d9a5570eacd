"""Lenia: Life with smooth cells, smooth time and a wide neighbourhood."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from operator import add
from typing import Any, Literal

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.model import (
    Field,
    Model,
    Neighbours,
    Parameter,
    Planes,
    State,
    observable,
    total,
    whole_number,
)

from ._orbium import orbium
from ._ring_sums import RingSumForm

# Around an Orbium, in radii: two that fly side by side do not feel each other.
_TILE = 4.5

Rings = Sequence[tuple[float, Sequence[tuple[int, int]]]]
"""Weights, and the offsets that have them."""


class Lenia(Model):
    """Chan's Lenia: cells from 0 to 1 that grow where the mean around them is about right.

    A step adds `rate * (2 exp(-(m - centre)^2 / (2 width^2)) - 1)`, where m is the mean of the
    cells within the radius, weighted by exp(4 - 1 / (r (1 - r))) at the distance r in radii.
    Cells stay between 0 and 1. The grid is periodic.

    Arguments:
        radius: How many cells the neighbourhood reaches, at least 2.
        start: `"orbium"` is gliders that fly up and down side by side; `"random"` is a cloud.

    Example:
        >>> Lenia().radius
        13

    Raises:
        ArgumentError: An argument is wrong; the message names it.
    """

    fields = (Field("cells"),)
    size = (128, 128)
    centre = Parameter(0.15, "the mean around a cell with which it grows most", low=0, high=1)
    width = Parameter(0.015, "how far the mean may be from it", above=0, high=1)
    rate = Parameter(0.1, "the time that a step takes", above=0, high=1)

    def __init__(
        self,
        radius: int = 13,
        *,
        start: Literal["orbium", "random"] = "orbium",
        **parameters: float,
    ) -> None:
        super().__init__(**parameters)
        self.radius = whole_number("radius", radius, 2)
        if start not in ("orbium", "random"):
            raise ArgumentError(f"`start` must be `orbium` or `random`, got {start!r}")
        self.start = start
        # Here, because a step is traced when it is compiled.
        self._rings = rings_of(self.radius)
        self.time_step = self.rate

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """One step of explicit Euler."""
        cells = state["cells"]
        parts = [
            reduce(add, [cells[offset] for offset in offsets]) * weight
            for weight, offsets in self.rings
        ]
        return {"cells": self.grown(cells.here, reduce(add, parts), params)}

    def grown(self, cells: Tensor, mean: Tensor, params: Mapping[str, Tensor]) -> Tensor:
        """The next cells, from the present ones and the means around them."""
        away = (mean - params["centre"]) / params["width"]
        growth = 2 * torch.exp(-(away**2) / 2) - 1
        return (cells + params["rate"] * growth).clamp(0, 1)

    def own_forms(self) -> Sequence[type[Any]]:
        """Sums that need not be compiled."""
        return (RingSumForm,)

    @property
    def rings(self) -> Rings:
        """The neighbourhood: cells at the same distance, and their weight."""
        return self._rings

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """Orbia, as many as fit side by side, or a cloud in the middle."""
        cells = torch.zeros(size)
        if self.start == "random":
            coarse = torch.rand(
                1, 1, *[max(2, n // self.radius) for n in size], generator=generator
            )
            cloud = torch.nn.functional.interpolate(coarse, size=size, mode="bicubic")[0, 0]
            y, x = (torch.linspace(-1, 1, n) for n in size)
            return {"cells": cloud.clamp(0, 1) * (torch.hypot(y[:, None], x) < 0.7)}
        creature = orbium(self.radius)
        if any(n < m for n, m in zip(size, creature.shape, strict=True)):
            raise ArgumentError(
                f"an Orbium of radius {self.radius} has {tuple(creature.shape)} cells and does "
                f"not fit into {size}; take a larger `size` or a smaller `radius`"
            )
        rows, columns = (max(1, int(n / (_TILE * self.radius))) for n in size)
        for i in range(rows):
            for j in range(columns):
                own = creature.flip(0) if j % 2 else creature
                y = int((i + 0.5) * size[0] / rows - own.shape[0] / 2)
                x = int((j + 0.5) * size[1] / columns - own.shape[1] / 2)
                cells[y : y + own.shape[0], x : x + own.shape[1]] = own
        return {"cells": cells}

    @observable(over="sum")
    def mass(self, state: State) -> Tensor:
        """The sum of all cells."""
        return total(state["cells"])


@cache
def rings_of(radius: int) -> Rings:
    """The cells of the neighbourhood by their weight, which depends on the distance alone."""
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for y in range(-radius, radius + 1):
        for x in range(-radius, radius + 1):
            if 0 < y * y + x * x < radius * radius:
                found[y * y + x * x].append((y, x))
    weights = {d: _weight(math.sqrt(d) / radius) for d in found}
    whole = math.fsum(weights[d] * len(offsets) for d, offsets in found.items())
    return tuple((weights[d] / whole, tuple(found[d])) for d in sorted(found))


def _weight(r: float) -> float:
    return math.exp(4 - 1 / (r * (1 - r)))
