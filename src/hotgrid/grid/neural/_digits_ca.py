"""Digits that classify themselves: the cells of one agree on which it is."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.model import Brush, State, colour_codes, observable, total, view

from ._cell_network import CellNetwork
from ._drawn_digits import BOX, drawn_digit
from ._neural_cells import NeuralCells

_OWN = Path(__file__).with_name("digits_ca.safetensors")
_DIGITS = 10
# Sets of all digits that are drawn for a start, and places in each that are left free.
_SETS, _FREE = 4, 2
# Red, green and blue of each digit, and of ink that has not decided.
_COLOURS = (
    (0.9, 0.1, 0.1), (1.0, 0.5, 0.0), (0.9, 0.8, 0.0), (0.5, 0.8, 0.1), (0.0, 0.6, 0.2),
    (0.0, 0.8, 0.8), (0.1, 0.4, 1.0), (0.4, 0.1, 0.7), (0.9, 0.3, 0.9), (0.5, 0.3, 0.1),
)  # fmt: skip
_UNDECIDED = 0.2


class DigitsCA(NeuralCells):
    """Randazzo et al.'s self-classifying digits: cells of ink agree on the digit they form.

    The first channel of a cell is its ink, 0 or 1, which a step never changes. The last ten
    are its vote: the largest is the digit that it believes to be part of. The others are for
    the cells alone. A cell without ink is empty. It begins with digits drawn by strokes; the
    brush draws ink, or erases it.

    Arguments:
        weights: A file of `benchmarks/train_digits_ca.py`; None is the one of hotgrid.

    Example:
        >>> sim = Simulation(DigitsCA(), size=(20, 240), compiled=False)
        >>> sim.observe()["decided"]
        0.0
        >>> sim.run(60).steps
        60
        >>> sim.observe()["decided"] > 0.5 * sim.observe()["ink"]
        True

    Raises:
        ArgumentError: The file does not contain self-classifying digits.
    """

    size = (4 * BOX, 6 * BOX)
    picture = "colour"
    coloured = ("colour",)
    conserved = ("ink",)

    def __init__(self, weights: str | None = None) -> None:
        network = CellNetwork.load(_OWN if weights is None else weights)
        if network.channels <= _DIGITS:
            raise ArgumentError(
                f"`weights` is `{weights}`, a network of {network.channels} channels; it "
                f"needs one for ink and {_DIGITS} for votes"
            )
        if network.output[0].any() or network.output_bias[0]:
            raise ArgumentError(
                f"`weights` is `{weights}`, a network that changes the first channel, ink; "
                "write the file with `benchmarks/train_digits_ca.py`"
            )
        super().__init__(network, alive=0, threshold=0.5, alive_around=False, boundary=0.0)
        self.weights = weights

    @classmethod
    def names_file(cls, option: str, value: str) -> bool:
        """Weights are in a file."""
        return option == "weights"

    def check(self, size: tuple[int, ...]) -> None:
        """A digit must fit."""
        if any(n < BOX for n in size):
            raise ArgumentError(
                f"a digit has {BOX} x {BOX} cells and does not fit into {size}; take a larger "
                "`size`"
            )

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """All digits, each drawn a little differently, with some places left free."""
        free = torch.zeros(_FREE, BOX, BOX)
        places = torch.cat(
            [
                torch.cat([torch.stack(digits), free])[
                    torch.randperm(_DIGITS + _FREE, generator=generator)
                ]
                for digits in (
                    [drawn_digit(i, generator) for i in range(_DIGITS)] for _ in range(_SETS)
                )
            ]
        )
        rows, columns = (n // BOX for n in size)
        drawn = places[torch.arange(rows * columns) % len(places)]
        sheet = drawn.view(rows, columns, BOX, BOX).transpose(1, 2).reshape(rows * BOX, -1)
        cells = torch.zeros(self.network.channels, *size)
        top, left = ((n - m) // 2 for n, m in zip(size, sheet.shape, strict=True))
        cells[0, top : top + len(sheet), left : left + sheet.shape[1]] = sheet
        return self.begun(cells, generator)

    def within(
        self, whole: tuple[int, ...], offset: tuple[int, ...], size: tuple[int, ...]
    ) -> Self:
        """The model itself: cells do not depend on their position."""
        return self

    def reach_of(self, view: str) -> int | None:
        """Views show each cell by itself."""
        return 0

    def brushes(self) -> Sequence[Brush]:
        """One brush: on draws ink, off erases it."""
        return (Brush("ink", "Ink", kind="states", radius=1.2),)

    def painted(self, state: State, brush: str, mask: Tensor, value: float) -> State:
        """Put ink into cells that have none, or clear cells."""
        cells = state["cells"]
        if value <= 0:
            return {"cells": torch.where(mask, 0.0, cells)}
        fresh = torch.zeros_like(cells)
        fresh[0] = 1.0
        return {"cells": torch.where(mask & (cells[0] <= self.threshold), fresh, cells)}

    @view
    def colour(self, state: State) -> Tensor:
        """The colour of the digit that a cell votes for, over white, as codes."""
        sure, vote = _votes(state)
        colours = torch.tensor(_COLOURS, device=vote.device)[vote].movedim(-1, 0)
        inked = _UNDECIDED + sure.clamp(0, 1) * (colours - _UNDECIDED)
        return colour_codes(torch.where(self._ink(state), inked, 1.0))

    @view
    def vote(self, state: State) -> Tensor:
        """The digit that a cell votes for; -1 without ink."""
        return torch.where(self._ink(state), _votes(state)[1], -1)

    @view
    def certainty(self, state: State) -> Tensor:
        """The largest vote of a cell, about 1 where it is sure."""
        return _votes(state)[0]

    @observable(over="sum")
    def ink(self, state: State) -> Tensor:
        """The number of cells with ink."""
        return total(self._ink(state))

    @observable(over="sum")
    def decided(self, state: State) -> Tensor:
        """The number of cells whose largest vote is above one half."""
        return total(self._ink(state) & (_votes(state)[0] > 0.5))

    def _ink(self, state: State) -> Tensor:
        return state["cells"][0] > self.threshold


def _votes(state: State) -> tuple[Tensor, Tensor]:
    """The largest vote of each cell, and for which digit it is."""
    return state["cells"][-_DIGITS:].max(0)
