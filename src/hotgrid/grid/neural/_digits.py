"""Digits that know what they are: every cell of a drawn digit agrees on its class."""

from collections.abc import Sequence

import torch
from torch import Tensor

from hotgrid.grid.model import Brush, State, observable, view

from ._cell_network import CellNetwork
from ._drawn_digits import SIDE, drawn_digits
from ._growing import shipped
from ._neural_cells import NeuralCells

_CLASSES = 10
_INK = 0


class DigitsCA(NeuralCells):
    """Cells of drawn digits that tell each other which digit they belong to.

    The first channel is ink and does not change; the last ten are how much a cell believes in
    each digit; those between are what cells tell each other. Only cells with ink are alive.
    After Randazzo et al. 2020, "Self-classifying MNIST digits", with digits that are drawn by
    formula.

    Arguments:
        weights: A file of a `CellNetwork`; empty for the network that comes with hotgrid.
        fire: The probability that a cell changes in a step.

    Example:
        >>> sim = Simulation(DigitsCA(), size=(18, 36), compiled=False)
        >>> sim.run(30).steps
        30

    Raises:
        ArgumentError: The file is none of a network, or `fire` is no probability.
    """

    size = (72, 108)
    picture = "digit"

    def __init__(self, weights: str = "", *, fire: float = 0.5) -> None:
        network = CellNetwork.load(weights) if weights else shipped("digits_ca.safetensors")
        super().__init__(network, fire=fire, alive=_INK, alive_around=False)
        self.weights = weights

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """Digits side by side, none of which knows anything yet."""
        rows, columns = (max(1, n // SIDE) for n in size)
        pictures, _ = drawn_digits(rows * columns, generator)
        return self.begun(self.asked(pictures, (size[0], size[1])), generator)

    def asked(self, pictures: Tensor, size: tuple[int, int]) -> Tensor:
        """Cells `[channels, *size]` with pictures `[n, SIDE, SIDE]` side by side."""
        rows, columns = (max(1, n // SIDE) for n in size)
        cells = torch.zeros(self.network.channels, *size)
        for k, picture in enumerate(pictures[: rows * columns]):
            y, x = k // columns * SIDE, k % columns * SIDE
            part = cells[_INK, y : y + SIDE, x : x + SIDE]
            part.copy_(picture[: part.shape[0], : part.shape[1]])
        return cells

    def brushes(self) -> Sequence[Brush]:
        """A pen."""
        return (Brush("ink", "Ink", kind="states"),)

    def painted(self, state: State, brush: str, mask: Tensor, value: float) -> State:
        """Cells with ink, or without it, that know nothing."""
        cells = state["cells"].masked_fill(mask, 0)
        cells[_INK].masked_fill_(mask, float(value > 0))
        return {"cells": cells}

    def within(
        self, whole: tuple[int, ...], offset: tuple[int, ...], size: tuple[int, ...]
    ) -> "DigitsCA":
        """Views and strokes see cell by cell."""
        return self

    def reach_of(self, view: str) -> int | None:
        """Its own views see the cell alone."""
        return 0 if view in ("digit", "ink") else super().reach_of(view)

    @view
    def digit(self, state: State) -> Tensor:
        """What cells believe to be, from 0 to 9; -1 where there is no ink."""
        cells = state["cells"]
        found = cells[-_CLASSES:].argmax(0).to(cells)
        return torch.where(cells[_INK] > self.threshold, found, -1)

    @view
    def ink(self, state: State) -> Tensor:
        """What is drawn, from 0 to 1."""
        return state["cells"][_INK]

    @observable
    def belief(self, state: State) -> Tensor:
        """How much cells with ink believe in their digit, on average; 1 when they are sure."""
        cells = state["cells"].double()
        ink = cells[_INK] > self.threshold
        return (cells[-_CLASSES:].amax(0) * ink).sum() / ink.sum().clamp(min=1)


def votes(model: DigitsCA, cells: Tensor) -> Tensor:
    """What most cells of each digit believe, `[rows, columns]` of digits; -1 without ink."""
    found = model.digit({"cells": cells}).long()
    rows, columns = (n // SIDE for n in found.shape)
    found = found[: rows * SIDE, : columns * SIDE].unflatten(1, (columns, SIDE))
    each = found.unflatten(0, (rows, SIDE)).transpose(1, 2).flatten(2)
    counts = torch.stack([(each == k).sum(-1) for k in range(_CLASSES)], -1)
    return torch.where(counts.sum(-1) > 0, counts.argmax(-1), -1)
