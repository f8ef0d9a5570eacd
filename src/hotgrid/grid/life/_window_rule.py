"""Automata given as a function of the window around a cell: general, and slow."""

from collections.abc import Callable, Mapping
from typing import Literal

from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.model import Neighbours, Planes, expect_callable, whole_number

from ._cells import CellModel


class WindowRule(CellModel):
    """Any two-state automaton, in one to three dims, as a function over windows.

    Arguments:
        rule: Takes all windows, uint8 `[..., *space, *window]` with `2 * radius + 1` cells
            in each dim of the window, and returns the new cells `[..., *space]`, of any
            type: what is not zero is alive. It is called once for all cells.
        radius: How many cells away it looks.
        topology: `"torus"` joins opposite edges; a `"plane"` is surrounded by dead cells.
        density: The share of living cells at the start.

    Example:
        >>> majority = WindowRule(lambda windows: windows.sum((-2, -1)) > 4)
        >>> majority.radius
        1

    Raises:
        ArgumentError: An argument is wrong; the message names it.
    """

    ranks = (1, 2, 3)

    def __init__(
        self,
        rule: Callable[[Tensor], Tensor],
        radius: int = 1,
        *,
        topology: Literal["torus", "plane"] = "torus",
        density: float = 0.3,
    ) -> None:
        super().__init__(topology, density)
        expect_callable("rule", rule, "the windows around all cells")
        self.rule = rule
        self.radius = whole_number("radius", radius, 1)

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """One generation."""
        after = self.rule(state["cells"].windows())
        if not isinstance(after, Tensor):
            raise ArgumentError(f"`rule` must return a tensor of cells, got {after!r}")
        return {"cells": after != 0}
