"""Growing cells: a picture that grows from one cell and heals."""

from collections.abc import Sequence
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

import torch
from torch import Tensor

from hotgrid.grid.model import Brush, State, observable, total, view

from ._cell_network import CellNetwork
from ._flower import flower
from ._neural_cells import NeuralCells

_ALPHA = 3
_VIEWS = ("brightness", "red", "green", "blue", "alpha")


class GrowingCA(NeuralCells):
    """A flower that grows from single cells and grows again where it was cut.

    The first four channels are red, green, blue (multiplied by alpha) and alpha; the others
    are what cells tell each other. After Mordvintsev et al. 2020, "Growing neural cellular
    automata", with one change: a cell is cleared by who is alive before a step, not also after
    it, so that a step reads no further than the next cell.

    Arguments:
        weights: A file of a `CellNetwork`; empty for the network that comes with hotgrid.
        fire: The probability that a cell changes in a step.

    Example:
        >>> sim = Simulation(GrowingCA(), size=(40, 40), compiled=False)
        >>> sim.run(8).steps
        8
        >>> sim.observe()["living"] > 9
        True

    Raises:
        ArgumentError: The file is none of a network, or `fire` is no probability.
    """

    size = (80, 120)
    picture = "brightness"
    tile = 40
    """How far apart flowers are sown, and the side of the grids that it was trained on."""

    def __init__(self, weights: str = "", *, fire: float = 0.5) -> None:
        network = CellNetwork.load(weights) if weights else shipped("growing_ca.safetensors")
        super().__init__(network, fire=fire, alive=_ALPHA)
        self.weights = weights

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """Single cells, so far apart that their flowers do not touch."""
        cells = torch.zeros(self.network.channels, *size)
        counts = [max(1, n // self.tile) for n in size]
        places = [
            [int((i + 0.5) * n / count) for i in range(count)]
            for n, count in zip(size, counts, strict=True)
        ]
        for y in places[0]:
            cells[_ALPHA:, y, places[1]] = 1
        return self.begun(cells, generator)

    def target(self, size: tuple[int, int]) -> Tensor:
        """The flower in the middle of a grid, red, green, blue and alpha `[4, *size]`."""
        picture = flower()
        found = torch.zeros(4, *size)
        y, x = ((n - side) // 2 for n, side in zip(size, picture.shape[1:], strict=True))
        found[:, y : y + picture.shape[1], x : x + picture.shape[2]] = picture
        return found

    def brushes(self) -> Sequence[Brush]:
        """Damage, and seeds."""
        return (
            Brush("erase", "Erase", kind="states"),
            Brush("seed", "Sow", kind="states"),
        )

    def painted(self, state: State, brush: str, mask: Tensor, value: float) -> State:
        """Cells cleared, or made to seeds; with the value 0 a seed is removed."""
        cells = state["cells"].masked_fill(mask, 0)
        if brush == "seed" and value:
            cells[_ALPHA:].masked_fill_(mask, 1)
        return {"cells": cells}

    def within(
        self, whole: tuple[int, ...], offset: tuple[int, ...], size: tuple[int, ...]
    ) -> "GrowingCA":
        """Views and strokes see cell by cell."""
        return self

    def reach_of(self, view: str) -> int | None:
        """Its own views see the cell alone."""
        return 0 if view in _VIEWS else super().reach_of(view)

    @view
    def brightness(self, state: State) -> Tensor:
        """How dark the flower is on white paper, from 0 to 1."""
        cells = state["cells"]
        shade = cells[0] * 0.299 + cells[1] * 0.587 + cells[2] * 0.114
        return (cells[_ALPHA] - shade).clamp(0, 1)

    @view
    def red(self, state: State) -> Tensor:
        """The first channel."""
        return state["cells"][0]

    @view
    def green(self, state: State) -> Tensor:
        """The second channel."""
        return state["cells"][1]

    @view
    def blue(self, state: State) -> Tensor:
        """The third channel."""
        return state["cells"][2]

    @view
    def alpha(self, state: State) -> Tensor:
        """The fourth channel: above the threshold a cell is alive."""
        return state["cells"][_ALPHA]

    @observable
    def living(self, state: State) -> Tensor:
        """The number of cells whose alpha is above the threshold."""
        return total(state["cells"][_ALPHA] > self.threshold)


@cache
def shipped(name: str) -> CellNetwork:
    """A network that comes with hotgrid."""
    with as_file(files("hotgrid.grid.neural").joinpath(name)) as path:
        return CellNetwork.load(Path(path))
