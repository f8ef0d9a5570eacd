"""Flow Lenia: Lenia whose growth moves matter instead of making it."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, reduce
from itertools import product
from operator import add
from typing import Any

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

from ._flow_form import FlowForm
from ._lenia import Rings, rings_of

At = Callable[[tuple[int, int]], Tensor]
"""A plane as cells see it at an offset."""


class FlowLenia(Model):
    """Plantec et al.'s Flow Lenia with one kernel: matter flows to where it would grow.

    As in Lenia, u is the growth that follows from the weighted mean around a cell. Matter
    flows along `(1 - a) grad u - a grad m`, where m is the matter of a cell and
    `a = min(1, (m / crowding)^2)` lets crowded matter spread. In a step the matter of a cell
    moves as a square a little wider than a cell, and is shared out by how much of it covers
    which cells (reintegration tracking). So matter is conserved up to rounding.

    Arguments:
        kernel: How many cells the neighbourhood reaches, at least 2.
        window: How many cells matter can move in a step.

    Example:
        >>> sim = Simulation(FlowLenia(kernel=4), size=(32, 32), compiled=False)
        >>> before = sim.observe()["mass"]
        >>> sim.run(20).steps
        20
        >>> abs(sim.observe()["mass"] / before - 1) < 1e-5
        True

    Raises:
        ArgumentError: An argument is wrong; the message names it.
    """

    fields = (Field("cells"),)
    size = (128, 128)
    conserved = ("mass",)
    centre = Parameter(
        0.15, "the mean around a cell with which it attracts most", low=0, high=1
    )
    width = Parameter(0.03, "how far the mean may be from it", above=0, high=1)
    rate = Parameter(0.2, "the time that a step takes", above=0, high=1)
    crowding = Parameter(2.0, "the matter of a cell from which on it only spreads", above=0)
    spread = Parameter(0.65, "half the side of the square that moves", low=0.5, high=1)

    def __init__(self, kernel: int = 9, *, window: int = 2, **parameters: float) -> None:
        super().__init__(**parameters)
        self.kernel = whole_number("kernel", kernel, 2)
        self.window = whole_number("window", window, 1)
        self.radius = self.kernel + 1 + self.window
        self._rings = rings_of(self.kernel)
        self.time_step = self.rate

    @property
    def rings(self) -> Rings:
        """The neighbourhood: cells at the same distance, and their weight."""
        return self._rings

    @cached_property
    def offsets(self) -> Sequence[tuple[int, int]]:
        """The offsets from which matter may come."""
        reach = range(-self.window, self.window + 1)
        return tuple(product(reach, reach))

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """Growth around a cell, flows from it, and the matter that arrives."""
        cells = state["cells"]
        if cells.rank != 2:
            raise ArgumentError("Flow Lenia needs a plane")
        growths: dict[tuple[int, int], Tensor] = {}

        def growth(at: tuple[int, int]) -> Tensor:
            if at not in growths:
                parts = [
                    reduce(add, [cells[at[0] + y, at[1] + x] for y, x in offsets]) * weight
                    for weight, offsets in self.rings
                ]
                growths[at] = self.growth(reduce(add, parts), params)
            return growths[at]

        flows = {
            at: self.flow(cells[at], _moved(growth, at), _moved(cells.__getitem__, at), params)
            for at in self.offsets
        }
        return {"cells": self.arrived(cells.__getitem__, lambda at: flows[at], params)}

    def growth(self, mean: Tensor, params: Mapping[str, Tensor]) -> Tensor:
        """Growth from -1 to 1, from the mean around a cell."""
        away = (mean - params["centre"]) / params["width"]
        return 2 * torch.exp(-(away**2) / 2) - 1

    def flow(
        self, here: Tensor, growth: At, matter: At, params: Mapping[str, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """How far matter moves in a step, along y and x, at most the window."""
        crowded = ((here / params["crowding"]) ** 2).clamp(0, 1)
        most = self.window + 0.5 - params["spread"]
        up, out = _slope(growth), _slope(matter)
        both = [
            params["rate"] * ((1 - crowded) * u - crowded * o)
            for u, o in zip(up, out, strict=True)
        ]
        y, x = (torch.minimum(torch.maximum(each, -most), most) for each in both)
        return y, x

    def arrived(
        self,
        matter: At,
        flow: Callable[[tuple[int, int]], tuple[Tensor, Tensor]],
        params: Mapping[str, Tensor],
    ) -> Tensor:
        """The matter that comes from all cells of the window."""
        side = 2 * params["spread"]
        found: Tensor | None = None
        for at in self.offsets:
            share = matter(at)
            for place, moved in zip(at, flow(at), strict=True):
                covered = 0.5 + params["spread"] - (place + moved).abs()
                share = share * (covered.clamp(0, 1) / side)
            found = share if found is None else found + share
        assert found is not None  # noqa: S101  a window has cells
        return found

    def for_trial(self) -> "FlowLenia":
        """The smallest one: a step reads some ten thousand neighbours otherwise."""
        return FlowLenia(2, window=1, **self.parameters)

    def own_forms(self) -> Sequence[type[Any]]:
        """Whole grids, one part of a step after the other."""
        return (FlowForm,)

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """Clouds of matter."""
        coarse = torch.rand(
            1, 1, *[max(2, n // self.kernel) for n in size], generator=generator
        )
        cloud = torch.nn.functional.interpolate(coarse, size=size, mode="bicubic")[0, 0]
        return {"cells": (1.5 * cloud - 0.6).clamp(0, 1)}

    @observable(over="sum")
    def mass(self, state: State) -> Tensor:
        """The sum of all cells."""
        return total(state["cells"])


def _moved(look: At, by: tuple[int, int]) -> At:
    return lambda at: look((at[0] + by[0], at[1] + by[1]))


def _slope(look: At) -> tuple[Tensor, Tensor]:
    """The slope along y and x, by Sobel's filters."""
    along = [look((y, -1)) + 2 * look((y, 0)) + look((y, 1)) for y in (-1, 1)]
    across = [look((-1, x)) + 2 * look((0, x)) + look((1, x)) for x in (-1, 1)]
    return (along[1] - along[0]) / 8, (across[1] - across[0]) / 8
