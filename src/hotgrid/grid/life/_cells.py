"""What the automata of this room share: cells that are 0 or 1, and how they start."""

from typing import Literal

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid._checks import near
from hotgrid.grid._model import Model, Parameter, State, observable, total, view

Topology = Literal["torus", "plane"]


class CellModel(Model):
    """A model whose field `cells` is uint8 `[*space]`: 1 is alive, 0 is dead.

    Arguments:
        topology: `"torus"` joins the ends; on a `"plane"` dead cells lie all around.
        density: The share of living cells at the start.
    """

    differentiable = False
    picture = "alive"

    def __init__(self, topology: Topology, density: float) -> None:
        super().__init__()
        known = ("torus", "plane")
        if topology not in known:
            raise ArgumentError(
                f"`topology` {topology!r} is unknown{near(str(topology), known)}; use `torus` "
                "(the ends are joined) or `plane` (dead cells lie all around)"
            )
        share = Parameter(0.3, "the share of living cells at the start", low=0, high=1)
        self.topology: Topology = topology
        self.density = share.checked("density", density)

    @property
    def outside(self) -> int | None:
        """What `Field` is told of the world beyond the ends."""
        return None if self.topology == "torus" else 0

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """Cells alive at random, `density` of them."""
        state = super().initial(size, generator)
        # Row by row, because the random numbers take four bytes a cell.
        for row in state["cells"]:
            row.copy_(torch.rand(row.shape, generator=generator) < self.density)
        return state

    def stored(self, state: State) -> State:
        """Cells as they are kept: whatever is not zero is alive."""
        return {name: x != 0 if name == "cells" else x for name, x in state.items()}

    def cells(self, state: State) -> Tensor:
        """The cells, uint8 `[*space]`: 1 is alive."""
        return state["cells"]

    @view
    def alive(self, state: State) -> Tensor:
        """The cells, `[*space]`: 1 is alive."""
        return state["cells"]

    @observable
    def population(self, state: State) -> Tensor:
        """The number of living cells."""
        return total(state["cells"])
