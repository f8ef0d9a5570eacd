"""One step of cells as vectors, over whole arrays with channels last."""

from collections.abc import Sequence

import torch
from torch import Tensor

from hotgrid.grid.forms._form import Setting
from hotgrid.grid.model import (
    CellVectors,
    Field,
    FieldFace,
    Input,
    Look,
    Neighbours,
    VectorModel,
    seen_beyond,
)

_CHANNELS: tuple[FieldFace, FieldFace] = ("periodic", "periodic")


def channels_last(x: Tensor, rank: int) -> Tensor:
    """`[..., channels, *space]` as `[..., *space, channels]`, sharing its memory."""
    return x.movedim(-rank - 1, -1)


def whole_vector_step(
    setting: Setting,
    model: VectorModel,
    fields: Sequence[Tensor],
    fixed: Sequence[Tensor],
    params: Sequence[Tensor],
) -> list[Tensor]:
    """One step, `[*batch, channels, *space]` in and out; results have channels last in memory.

    So a step that follows finds them as it wants them.
    """
    given = dict(zip([kind.name for kind in (*model.fields, *model.inputs)],
                     (*fields, *fixed), strict=True))  # fmt: skip
    result = model.vector_step(
        {kind.name: _handle(setting, kind, given[kind.name]) for kind in model.fields},
        {kind.name: _handle(setting, kind, given[kind.name]) for kind in model.inputs},
        dict(zip(setting.params, params, strict=True)),
    )
    found: list[Tensor] = []
    for field, before in zip(model.fields, fields, strict=True):
        x = result[field.name].to(setting.kept_as(field))
        shape = channels_last(before, setting.rank).shape
        x = x.expand(_joined(setting, shape)).reshape(shape)
        found.append(x.movedim(-1, -setting.rank - 1))
    return found


def _joined(setting: Setting, shape: torch.Size) -> tuple[int, ...]:
    """The shape without the batch dim: runs lie one after another along the first of space."""
    if not setting.batch:
        return tuple(shape)
    return (shape[0] * shape[1], *shape[2:])


def _handle(setting: Setting, kind: Field | Input, x: Tensor) -> CellVectors:
    if kind.dtype is None and setting.storage != setting.dtype:
        x = x.to(setting.dtype)
    rank = setting.rank
    look = _shifting(kind, rank)

    def seen(x: Tensor, offset: tuple[int, ...]) -> Tensor:
        there = look(x, offset)
        if not setting.batch:
            return there
        return there.expand(*setting.batch, *there.shape[-rank - 1 :]).flatten(0, 1)

    handle = Neighbours([channels_last(x, rank)], seen, rank, setting.model.radius)
    return CellVectors(handle.__getitem__, rank, kind.components)


def _shifting(kind: Field | Input, rank: int) -> Look:
    """Look by shifting `[..., *space, channels]`; inputs are periodic at the ends."""
    sides = kind.faces(rank) if isinstance(kind, Field) else (_CHANNELS,) * rank

    def look(x: Tensor, offset: tuple[int, ...]) -> Tensor:
        moved = {dim - rank - 1: o for dim, o in enumerate(offset) if o}
        if not moved:
            return x
        if all(low == "periodic" for low, _ in sides):
            return torch.roll(x, [-o for o in moved.values()], list(moved))
        return seen_beyond(x, (*offset, 0), (*sides, _CHANNELS))

    return look
