"""Any rule that counts neighbours, in any number of dims, on words of 32 cells."""

from collections.abc import Mapping

import torch
from torch import Tensor

from hotgrid.grid.life._rules import Rule
from hotgrid.grid.model import FieldBoundary, Neighbours, Planes

from ._packed import WordModel, added, rule_table, selected, three_across


class PackedCounts(WordModel):
    """Cells by the number of their living neighbours, on words of 32 cells.

    Arguments:
        rule: The rule.
        boundary: As in `Field`.
    """

    def __init__(self, rule: Rule, boundary: FieldBoundary) -> None:
        super().__init__(boundary)
        self.rule = rule
        self._digits = rule.most.bit_length()
        self._table = rule_table(rule, self._digits)

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """One generation: count the neighbours in binary, then apply the rule."""
        words = state["cells"]
        rows: dict[tuple[int, ...], list[int]] = {}
        for *row, column in self.rule.offsets():
            rows.setdefault(tuple(row), []).append(column)
        # Bits of the same weight: ones, twos, fours and so on.
        piles: list[list[Tensor]] = [[] for _ in range(self._digits)]
        for row, columns in rows.items():
            across = three_across(words, row)
            piles[0] += [across[1 + column] for column in columns]
        count = _counted(piles)
        cell = words[(0,) * self.rule.rank]
        after = selected(self._table, [*count[::-1], cell])
        if isinstance(after, bool):
            after = torch.full_like(cell, -after)
        return {"cells": after}


def _counted(piles: list[list[Tensor]]) -> list[Tensor]:
    """One bit of each weight, from many; the sum has no more digits than there are piles."""
    count: list[Tensor] = []
    for weight, pile in enumerate(piles):
        carries = piles[weight + 1] if weight + 1 < len(piles) else []
        while len(pile) > 2:
            low, high = added(*pile[:3])
            pile[:3] = []
            pile.append(low)
            carries.append(high)
        if len(pile) == 2:
            carries.append(pile[0] & pile[1])
            pile[:] = [pile[0] ^ pile[1]]
        count.append(pile[0])
    return count
