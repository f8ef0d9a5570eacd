"""Growing cells: a seed becomes a picture, and what is erased of it grows again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional

from hotgrid.errors import ArgumentError
from hotgrid.grid.model import Brush, State, colour_codes, observable, total, view

from ._cell_network import CellNetwork
from ._neural_cells import NeuralCells

_OWN = Path(__file__).with_name("growing_ca.safetensors")
# Red, green, blue and alpha; a cell of more of it is mature, and keeps those around it alive.
_COLOURS = 4
_MATURE = 0.1


class GrowingCA(NeuralCells):
    """Mordvintsev et al.'s growing automaton: a seed becomes a picture and heals it.

    The first channels of a cell are red, green, blue (each times alpha) and alpha; the others
    are for the cells alone. In a step about half of the cells change. Those without a mature
    cell around them are cleared. The brush erases cells, or puts seeds.

    Arguments:
        weights: A file of `benchmarks/train_growing_ca.py`; None is the one of hotgrid.

    Example:
        >>> sim = Simulation(GrowingCA(), compiled=False)
        >>> sim.observe()["mature"]
        1.0
        >>> sim.run(80).steps
        80
        >>> sim.observe()["mature"] > 100
        True

    Raises:
        ArgumentError: The file does not contain a growing automaton.
    """

    size = (32, 32)
    picture = "colour"
    coloured = ("colour",)

    def __init__(self, weights: str | None = None) -> None:
        path = _OWN if weights is None else Path(weights)
        network, more = CellNetwork.read(path)
        target = more.get("target", torch.empty(0))
        if target.ndim != 3 or len(target) != _COLOURS or target.dtype != torch.uint8:
            raise ArgumentError(
                f"`weights` is `{weights}`, which lacks a `target` of bytes `[4, rows, "
                "columns]`; write the file with `benchmarks/train_growing_ca.py`"
            )
        if network.channels <= _COLOURS:
            raise ArgumentError(
                f"`weights` is `{weights}`, a network of {network.channels} channels; it "
                f"needs more than {_COLOURS}"
            )
        super().__init__(network, fire=0.5, alive=3, threshold=_MATURE, boundary=0.0)
        self.weights = weights
        self._target = target.float() / 255

    @property
    def target(self) -> Tensor:
        """The picture that it was trained to grow, `[4, rows, columns]` from 0 to 1."""
        return self._target

    @classmethod
    def names_file(cls, option: str, value: str) -> bool:
        """Weights are in a file."""
        return option == "weights"

    def check(self, size: tuple[int, ...]) -> None:
        """The picture must fit."""
        if any(n < m for n, m in zip(size, self._target.shape[1:], strict=True)):
            raise ArgumentError(
                f"the picture has {tuple(self._target.shape[1:])} cells and does not fit into "
                f"{size}; take a larger `size`"
            )

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """A seed in the middle."""
        cells = torch.zeros(self.network.channels, *size)
        cells[:, size[0] // 2, size[1] // 2] = self._seed(1.0)
        return self.begun(cells, generator)

    def _seed(self, value: float) -> Tensor:
        """The channels of a seed times a value."""
        seed = torch.full((self.network.channels,), value)
        seed[: _COLOURS - 1] = 0.0
        return seed

    def within(
        self, whole: tuple[int, ...], offset: tuple[int, ...], size: tuple[int, ...]
    ) -> Self:
        """The model itself: cells do not depend on their position."""
        return self

    def reach_of(self, view: str) -> int | None:
        """Views show each cell by itself."""
        return 0

    def brushes(self) -> Sequence[Brush]:
        """Off erases, on puts seeds."""
        return (Brush("alive", "Cells", kind="states", value=0.0),)

    def painted(self, state: State, brush: str, mask: Tensor, value: float) -> State:
        """Clear cells, or make seeds of them."""
        cells = state["cells"]
        fresh = self._seed(float(value > 0)).to(cells)[:, None, None]
        return {"cells": torch.where(mask, fresh, cells)}

    @view
    def colour(self, state: State) -> Tensor:
        """The colours of cells over white, as codes."""
        cells = state["cells"]
        return colour_codes(1 - cells[3].clamp(0, 1) + cells[:3])

    @view
    def alpha(self, state: State) -> Tensor:
        """How opaque a cell is, from 0 to 1."""
        return state["cells"][3].clamp(0, 1)

    @observable
    def mature(self, state: State) -> Tensor:
        """The number of mature cells."""
        return total(state["cells"][3] > self.threshold)

    @observable
    def error(self, state: State) -> Tensor:
        """The mean squared error of colours and alpha, over the cells of the target."""
        cells = state["cells"][:_COLOURS]
        away = cells - self.on_grid(tuple(cells.shape[1:])).to(cells)
        return total(away.square()) / self._target.numel()

    def on_grid(self, size: tuple[int, ...]) -> Tensor:
        """The target in the middle of a grid, `[4, *size]`."""
        ends: list[int] = []
        for n, m in zip(size, self._target.shape[1:], strict=True):
            first = n // 2 - m // 2
            ends = [first, n - m - first, *ends]
        return functional.pad(self._target, ends)
