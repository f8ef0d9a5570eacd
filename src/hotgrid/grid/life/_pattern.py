"""A pattern: a small picture of cells, with the rule it was made for."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError

from ._rule import Rule


@dataclass(frozen=True, eq=False)
class Pattern:
    """Cells to put on a grid.

    Attributes:
        cells: uint8 `[rows, columns]`: 1 is alive. Anything that is not zero is taken
            for alive.
        rule: The rule it was made for, if known.
        name: What it is called.
        comments: Remarks, a line each.

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
    rule: Rule | None = None
    name: str = ""
    comments: Sequence[str] = ()

    def __post_init__(self) -> None:
        cells = torch.as_tensor(self.cells)
        if cells.ndim != 2:
            raise ArgumentError(
                f"`cells` of a pattern are [rows, columns], got the shape {tuple(cells.shape)}"
            )
        for text in (self.name, *self.comments):
            if len(text.splitlines()) > 1 or text != text.strip():
                raise ArgumentError(
                    f"a name or comment is one line without blanks at its ends, got {text!r}"
                )
        object.__setattr__(self, "cells", (cells != 0).to(torch.uint8))
        object.__setattr__(self, "comments", tuple(self.comments))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pattern):
            return NotImplemented
        same = (self.rule, self.name, self.comments) == (other.rule, other.name, other.comments)
        return same and torch.equal(self.cells, other.cells)

    # Cells can be written to.
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def placed(self, size: Sequence[int], at: Sequence[int] | None = None) -> Tensor:
        """A grid with the pattern on it, uint8 `[*size]`, ready to be a state.

        Arguments:
            size: Rows and columns of the grid.
            at: Row and column of its upper left corner; by default it stands in the middle.

        Raises:
            ArgumentError: It does not fit.
        """
        rows, columns = self.cells.shape
        if at is None:
            at = [(n - m) // 2 for n, m in zip(size, self.cells.shape, strict=True)]
        y, x = at
        if min(y, x) < 0 or y + rows > size[0] or x + columns > size[1]:
            raise ArgumentError(
                f"the pattern {self.name or 'without a name'} has {rows} x {columns} cells and "
                f"does not fit at row {y} and column {x} of a grid of {size[0]} x {size[1]}"
            )
        grid = torch.zeros(tuple(size), dtype=torch.uint8)
        grid[y : y + rows, x : x + columns] = self.cells
        return grid
