"""Block automata on the Margolus neighbourhood: squares of four cells that alternate."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, near
from hotgrid.grid.model import Brush, Field, Neighbours, Planes, State, places

from ._cells import CellModel

BLOCK_RULES: Mapping[str, tuple[int, ...]] = {
    "bbm": (0, 8, 4, 3, 2, 5, 9, 7, 1, 6, 10, 11, 12, 13, 14, 15),
    "critters": (15, 14, 13, 3, 11, 5, 6, 1, 7, 9, 10, 2, 12, 4, 8, 0),
    "tron": (15, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0),
    "single rotation": (0, 2, 8, 3, 1, 5, 6, 7, 4, 9, 10, 11, 12, 13, 14, 15),
    "swap on diagonal": (0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15),
}
"""Rules that have a name: what becomes of each of the 16 blocks."""
_BLOCKS = 16
_LIST = re.compile(r"\s*(?:MS?,?\s*D?)?((?:\d+[,;]){15}\d+)\s*", re.I)


class Margolus(CellModel):
    """Block automata: every block of 2 x 2 cells is replaced, then the blocks move by (1, 1).

    A rule says what becomes of each of the 16 blocks. One that is a permutation can be run
    backwards: see `inverse`. The field `place` says which cell of its block a cell is; it
    alternates by itself.

    Arguments:
        rule: A name (`bbm`, the billiard ball machine of Margolus; `critters`; `tron`; ...), or
            16 numbers as in `M0,8,4,3,...`: bits 1, 2, 4, 8 are the upper left, upper right,
            lower left and lower right cell.
        start: `"random"` is cells at random; `"square"` only those of a square in the middle.
        density: The share of living cells at the start.

    Example:
        >>> Margolus("bbm").inverse().rule == Margolus("bbm").rule
        True

    Raises:
        ArgumentError: An argument is wrong; the message names it.
    """

    windowed = True
    topologies = ("torus",)

    def __init__(
        self,
        rule: str | tuple[int, ...] = "critters",
        *,
        start: Literal["random", "square"] = "square",
        density: float = 0.5,
    ) -> None:
        super().__init__("torus", density)
        self.rule = _checked(rule)
        if start not in ("random", "square"):
            raise ArgumentError(f"`start` must be `random` or `square`, got {start!r}")
        self.start = start
        self.fields = (*self.fields, Field("place", dtype=torch.uint8))
        # Four bits for each block, in one number.
        packed = sum(after << 4 * block for block, after in enumerate(self.rule))
        self._packed = packed - (1 << 64) if packed >> 63 else packed
        counts = [
            (block.bit_count(), after.bit_count()) for block, after in enumerate(self.rule)
        ]
        if all(before == after for before, after in counts):
            self.conserved = ("population",)

    @property
    def reversible(self) -> bool:
        """Whether no two blocks become the same."""
        return len(set(self.rule)) == _BLOCKS

    def inverse(self) -> "Margolus":
        """The rule that undoes a step. Run it from a state that `turned` gave.

        Raises:
            ArgumentError: The rule is not a permutation of the blocks.
        """
        if not self.reversible:
            raise ArgumentError(
                f"the rule {self.rule} is not reversible: two blocks become one"
            )
        return Margolus(tuple(self.rule.index(block) for block in range(_BLOCKS)))

    @staticmethod
    def turned(state: State) -> State:
        """A state whose next step divides the grid as the last one did."""
        return {**state, "place": state["place"] ^ 3}

    def check(self, size: tuple[int, ...]) -> None:
        """Blocks must fit around the torus."""
        if any(n % 2 for n in size):
            raise ArgumentError(f"blocks of 2 x 2 cells need even sides, got {size}")

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """The cells, and where each is in its block."""
        cells = self.first_cells(size, generator)
        if self.start == "square":
            rows, columns = (
                (x >= 3 * n // 8) & (x < n - 3 * n // 8)
                for x, n in zip(places(size), size, strict=True)
            )
            cells = cells * (rows[:, None] & columns)
        y, x = ((x % 2).to(torch.uint8) for x in places(size))
        return {"cells": cells, "place": 2 * y[:, None] + x}

    def stored(self, state: State) -> State:
        """Cells that are 0 or 1, places from 0 to 3."""
        known = super().stored(state)
        return {k: x & 3 if k == "place" else x for k, x in known.items()}

    def brushes(self) -> Sequence[Brush]:
        """Living cells, and dead ones."""
        return super().brushes()[:1]

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """Replace every block, then move the blocks."""
        cells, place = state["cells"], state["place"].here
        right, lower = (place & 1) == 1, place > 1
        beside = torch.where(right, cells[0, -1], cells[0, 1])
        above = torch.where(lower, cells[-1, 0], cells[1, 0])
        across = torch.where(
            lower,
            torch.where(right, cells[-1, -1], cells[-1, 1]),
            torch.where(right, cells[1, -1], cells[1, 1]),
        )
        block = cells.here << place | beside << (place ^ 1) | above << (place ^ 2)
        block = block | across << (place ^ 3)
        at = (4 * block + place).to(torch.int64)
        after = (torch.full_like(at, self._packed) >> at & 1).to(torch.uint8)
        return {"cells": after, "place": place ^ 3}


def _checked(rule: object) -> tuple[int, ...]:
    found: object = rule
    if isinstance(rule, str):
        listed = _LIST.fullmatch(rule)
        found = BLOCK_RULES.get(rule.strip().lower())
        if listed:
            found = tuple(int(n) for n in re.split("[,;]", listed[1]))
        if found is None:
            raise ArgumentError(
                f"`{rule}` is not a block rule{near(rule.lower(), BLOCK_RULES)} (rules are "
                f"{', '.join(BLOCK_RULES)}, or 16 numbers, `M0,8,4,3,...`)"
            )
    blocks = tuple(found) if isinstance(found, list | tuple) else ()
    if len(blocks) != _BLOCKS or not all(
        isinstance(n, int) and 0 <= n < _BLOCKS for n in blocks
    ):
        raise ArgumentError(
            f"`rule` must be 16 numbers from 0 to 15, one for each block, got {rule!r}"
        )
    return blocks
