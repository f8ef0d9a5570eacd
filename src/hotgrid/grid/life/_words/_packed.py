"""Life with 32 cells in a word: a step adds neighbours bit by bit, all 32 at once.

Bit `j` of word `w` is the cell of column `32 * w + j`. Words are int32, because torch
cannot shift unsigned ones; a shift to the right therefore drags the sign along and is
masked.
"""

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from hotgrid.grid.forms import Form
from hotgrid.grid.life._rules import Rule
from hotgrid.grid.model import Field, FieldBoundary, Model, Neighbours, Planes, State

from ._passes import NativeLifeForm, TritonLifeForm

CELLS_PER_WORD = 32
"""How many cells share a number."""

# Eight cells, a byte each, times this: cell i of byte i reaches bit 56 + i of the product,
# and no other pair of a cell and a bit of the factor reaches the top byte.
_GATHER = 0x0102040810204080
_SPREAD = 0x0101010101010101
# Bit i of byte i, as a signed number.
_DIAGONAL = 0x8040201008040201 - (1 << 64)


# Cells that are packed at once: on the way each of them takes some bytes.
_AT_ONCE = 1 << 22


def packed(cells: Tensor) -> Tensor:
    """Cells that are 0 and not 0, `[..., columns]`, as int32 words `[..., columns / 32]`."""
    shape = (*cells.shape[:-1], cells.shape[-1] // CELLS_PER_WORD)
    words = torch.empty(shape, dtype=torch.int32, device=cells.device)
    for rows, into in _slabs(cells, words):
        eights = (rows != 0).contiguous().view(torch.int64)
        into.copy_(((eights * _GATHER) >> 56).to(torch.uint8).view(torch.int32))
    return words


def unpacked(words: Tensor) -> Tensor:
    """Words `[..., columns / 32]` as uint8 cells `[..., columns]`."""
    shape = (*words.shape[:-1], words.shape[-1] * CELLS_PER_WORD)
    cells = torch.empty(shape, dtype=torch.uint8, device=words.device)
    for rows, into in _slabs(words, cells):
        eights = rows.contiguous().view(torch.uint8).to(torch.int64)
        into.copy_(((eights * _SPREAD) & _DIAGONAL).view(torch.uint8).ne(0))
    return cells


def _slabs(given: Tensor, to: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Two tensors of as many rows, some rows of each at a time."""
    rows = max(1, _AT_ONCE // max(1, given.shape[-1], to.shape[-1]))
    yield from zip(
        given.reshape(-1, given.shape[-1]).split(rows),
        to.view(-1, to.shape[-1]).split(rows),
        strict=True,
    )


class WordModel(Model):
    """Two-state cells in words of 32 along the last dim.

    Arguments:
        boundary: As in `Field`.
    """

    differentiable = False

    def __init__(self, boundary: FieldBoundary) -> None:
        super().__init__()
        self.fields = (Field("cells", dtype=torch.int32, boundary=boundary),)

    def stored_size(self, size: tuple[int, ...]) -> tuple[int, ...]:
        """The grid of words."""
        return (*size[:-1], size[-1] // CELLS_PER_WORD)

    def reach(self, steps: int, rank: int) -> tuple[int, ...]:
        """Along a row changes spread by a bit per step, and by a word only after 32."""
        return (*super().reach(steps, rank)[:-1], -(-steps // CELLS_PER_WORD))

    def stored(self, state: State) -> State:
        """Cells to words."""
        return {"cells": packed(state["cells"])} if "cells" in state else {}

    def shown(self, state: State) -> State:
        """Words to cells."""
        return {"cells": unpacked(state["cells"])}


class PackedLife(WordModel):
    """`Life` on words of 32 cells; it gives the same cells.

    Arguments:
        rule: A rule of the Moore neighbourhood in two dims.
        boundary: As in `Field`.
    """

    def __init__(self, rule: Rule, boundary: FieldBoundary) -> None:
        super().__init__(boundary)
        self.rule = rule
        self._table = rule_table(rule, 4)

    def own_forms(self) -> Sequence[type[Form]]:
        """Several generations in one pass."""
        return (NativeLifeForm, TritonLifeForm)

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """One generation: count the neighbours in four bits, then apply the rule."""
        words = state["cells"]
        up, row, down = (three_across(words, (dy,)) for dy in (-1, 0, 1))
        left, cell, right = row
        up_1, up_2 = added(*up)
        down_1, down_2 = added(*down)
        ones, carry_2 = added(up_1, down_1, left ^ right)
        pairs, carry_4 = added(up_2, down_2, left & right)
        over = pairs & carry_2
        count = [over & carry_4, over ^ carry_4, pairs ^ carry_2, ones]
        after = selected(self._table, [*count, cell])
        if isinstance(after, bool):
            after = torch.full_like(cell, -after)
        return {"cells": after}


def three_across(words: Neighbours, row: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """The left neighbours, the cells and the right neighbours of a row of words."""
    cell = words[(*row, 0)]
    left = (cell << 1) | ((words[(*row, -1)] >> 31) & 1)
    right = ((cell >> 1) & 0x7FFFFFFF) | (words[(*row, 1)] << 31)
    return left, cell, right


def added(a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """The sum of three bits: its low bit and its high bit."""
    either = a ^ b
    return either ^ c, (a & b) | (either & c)


def rule_table(rule: Rule, digits: int) -> tuple[bool | None, ...]:
    """The rule by the bits of count and cell, cell lowest; None for impossible counts."""
    sets = (rule.birth, rule.survival)
    return tuple(
        n in sets[cell] if n <= rule.most else None
        for n in range(1 << digits)
        for cell in (0, 1)
    )


def selected(table: Sequence[bool | None], bits: Sequence[Tensor]) -> Tensor | bool:
    """The entry of a table at the place that bits spell, highest bit first.

    Halves that agree need not be distinguished, and a half that is constant costs one
    operation: what is left of B3/S23 is `~fours & twos & (ones | cell)`.
    """
    values = {value for value in table if value is not None}
    if len(values) < 2:
        return values == {True}
    half = len(table) // 2
    off, on = table[:half], table[half:]
    if all(a is None or b is None or a == b for a, b in zip(off, on, strict=True)):
        return selected([a if b is None else b for a, b in zip(off, on, strict=True)], bits[1:])
    bit, a, b = bits[0], selected(off, bits[1:]), selected(on, bits[1:])
    if isinstance(a, bool) and isinstance(b, bool):
        return bit if b else ~bit
    if isinstance(a, bool):
        return ~bit | b if a else bit & b
    if isinstance(b, bool):
        return bit | a if b else ~bit & a
    return a ^ (bit & (a ^ b))
