"""Where a model has little to do: cells in which none of its inputs has an effect.

Walls, inlets and solids are selects in every cell of a step, but change few of them. A
model may define a step without them (`Model.quiet`), for the pieces of a grid where all
of these inputs are zero.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from hotgrid.grid.forms._form import Setting


def quiet_setting(setting: Setting) -> Setting | None:
    """The setting of a model's quiet step, or None if it has none."""
    twin = setting.model.quiet()
    if twin is None:
        return None
    inputs = {known.name: setting.inputs[known.name] for known in twin.inputs}
    return replace(setting, model=twin, inputs=inputs)


def loud_pieces(given: Sequence[Tensor], *, first: int, cells: int, piece: int) -> Tensor:
    """For every piece of a flat grid whether anything is not zero there, uint8 `[pieces]`.

    Arguments:
        given: Inputs stored flat, `[..., cells]`, with space for a piece after them.
        first: The first cell of the first piece.
        cells: How many cells pieces must cover.
        piece: How many cells a piece has.
    """
    pieces = -(-cells // piece)
    found = torch.zeros(pieces, dtype=torch.bool)
    for x in given:
        for plane in x.flatten(0, -2):
            there = plane.narrow(-1, first, pieces * piece)
            found |= (there.view(pieces, piece) != 0).any(1)
    return found.to(torch.uint8)
