"""A pattern: a small picture of cells, with the rule it was made for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.life._rules import AnyRule, Bounds
from hotgrid.grid.model import GridWindow, places, window_shape


@dataclass(frozen=True, eq=False)
class Pattern:
    """Cells to put on a grid.

    Attributes:
        cells: uint8 `[rows, columns]`: 1 is alive. With two states, anything that is not
            zero is taken for alive.
        rule: The rule it was made for, if known; a text names one such as `WireWorld`.
        name: What it is called.
        comments: Remarks, a line each.
        states: How many states a cell has.
        bounds: The grid it was made for, if that is bounded.

    Example:
        >>> Pattern(torch.ones(2, 2)).placed((4, 4), at=(0, 1))
        tensor([[0, 1, 1, 0],
                [0, 1, 1, 0],
                [0, 0, 0, 0],
                [0, 0, 0, 0]], dtype=torch.uint8)

    Raises:
        ArgumentError: The cells are not a table, or a text has more than one line.
    """

    cells: Tensor
    rule: AnyRule | None = None
    name: str = ""
    comments: Sequence[str] = ()
    states: int = 2
    bounds: Bounds | None = None

    def __post_init__(self) -> None:
        try:
            cells = torch.as_tensor(self.cells)
        except (TypeError, ValueError, RuntimeError):
            raise ArgumentError(
                f"`cells` of a pattern are a table of 0 and 1, got {self.cells!r}"
            ) from None
        if cells.ndim != 2:
            raise ArgumentError(
                f"`cells` of a pattern are [rows, columns], got the shape {tuple(cells.shape)}"
            )
        for text in (self.name, *self.comments):
            if not isinstance(text, str) or len(text.splitlines()) > 1 or text != text.strip():
                raise ArgumentError(
                    f"a name or comment is one line without blanks at its ends, got {text!r}"
                )
        if not isinstance(self.states, int) or not 2 <= self.states <= 256:
            raise ArgumentError(f"a pattern has from 2 to 256 `states`, got {self.states!r}")
        if self.states == 2:
            cells = cells != 0
        elif cells.numel() and not 0 <= int(cells.min()) <= int(cells.max()) < self.states:
            raise ArgumentError(
                f"`cells` of a pattern of {self.states} states are from 0 to "
                f"{self.states - 1}, got {int(cells.min())} to {int(cells.max())}"
            )
        object.__setattr__(self, "cells", cells.to(torch.uint8))
        object.__setattr__(self, "comments", tuple(self.comments))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pattern):
            return NotImplemented
        own, others = (
            (each.rule, each.name, each.comments, each.states, each.bounds)
            for each in (self, other)
        )
        return own == others and torch.equal(self.cells, other.cells)

    # Cells can be written to.
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def placed(self, size: Sequence[int], at: Sequence[int] | None = None) -> Tensor:
        """A grid with the pattern on it, uint8 `[*size]`, ready to be a state.

        Arguments:
            size: Rows and columns of the grid.
            at: Row and column of its upper left corner; by default it is in the middle.

        Raises:
            ArgumentError: It does not fit.
        """
        rows, columns = self.cells.shape
        height, width = _pair("size", size)
        y, x = ((height - rows) // 2, (width - columns) // 2) if at is None else _pair("at", at)
        if min(y, x) < 0 or y + rows > height or x + columns > width:
            raise ArgumentError(
                f"the pattern {self.name or 'without a name'} has {rows} x {columns} cells and "
                f"does not fit at row {y} and column {x} of a grid of {height} x {width}; take "
                f"a `size` of at least {rows} x {columns}"
            )
        whole = size if isinstance(size, GridWindow) else (height, width)
        grid = torch.zeros(window_shape(whole), dtype=torch.uint8)
        down, right = (place - at for place, at in zip(places(whole), (y, x), strict=True))
        i = ((down >= 0) & (down < rows)).nonzero()
        j = ((right >= 0) & (right < columns)).nonzero()[:, 0]
        grid[i, j] = self.cells[down[i], right[j]].to(torch.uint8)
        return grid


def expect_pattern(value: object) -> None:
    """Refuse what is not a pattern."""
    if not isinstance(value, Pattern):
        raise ArgumentError(
            f"`pattern` must be a Pattern, got {value!r}; `life.pattern(name)` gives one"
        )


def _pair(name: str, value: object) -> tuple[int, int]:
    """Two whole numbers, of rows and of columns."""
    found = tuple(value) if isinstance(value, Iterable) else ()
    if len(found) != 2 or not all(isinstance(n, Integral) for n in found):
        raise ArgumentError(
            f"`{name}` must be two whole numbers, (rows, columns), got {value!r}"
        )
    return int(found[0]), int(found[1])
