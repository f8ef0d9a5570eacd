"""`operate`: a batch in which every sample has an operation and an argument of its own."""

import math
from collections.abc import Collection
from enum import IntEnum
from typing import TypeAlias

import torch
from torch import Tensor

from ._blends import colour, sharpness
from ._tables import Tables, looked_up
from ._warp import Interpolation, warped

Fill: TypeAlias = tuple[int, ...]


class PixelOp(IntEnum):
    """Operations on bytes. `operate` says what their arguments are."""

    IDENTITY = 0
    BRIGHTNESS = 1
    CONTRAST = 2
    INVERT = 3
    POSTERIZE = 4
    SOLARIZE = 5
    SOLARIZE_ADD = 6
    AUTOCONTRAST = 7
    EQUALIZE = 8
    COLOUR = 9
    SHARPNESS = 10
    ROTATE = 11
    SHEAR_X = 12
    SHEAR_Y = 13
    TRANSLATE_X = 14
    TRANSLATE_Y = 15


_BLENDS = {PixelOp.COLOUR: colour, PixelOp.SHARPNESS: sharpness}
_WARPS = frozenset(op for op in PixelOp if op >= PixelOp.ROTATE)
_TABLES = frozenset(op for op in PixelOp if PixelOp.BRIGHTNESS <= op <= PixelOp.EQUALIZE)


def operate(
    images: Tensor,
    op: Tensor,
    argument: Tensor,
    among: Collection[PixelOp],
    *,
    interpolation: Interpolation = "nearest",
    fill: Fill = (128,),
    cubic: Tensor | None = None,
) -> Tensor:
    """Apply to every sample its operation.

    Operations of a kind are one pass over the pixels, whatever the samples have chosen: a
    table lookup, a blend for each of two, and an affine map.

    Args:
        images: uint8 `[batch, channels, height, width]`.
        op: The operation of each sample, a number of `PixelOp`.
        argument: Its argument, float32 `[batch]`: a factor, bits, a threshold, an amount,
            degrees, a slope, or a shift in pixels.
        among: The operations that can occur; others are not computed.
        interpolation: How rotations, shears and translations interpolate.
        fill: The value outside of the image: a byte, or one for each channel.
        cubic: Which samples are bicubic if the interpolation is random.
    """
    tables = Tables(images)
    known = [each for each in sorted(among) if each in _TABLES]
    if known:
        table = tables.identity.to(torch.uint8).expand(*images.shape[:2], 256)
        for each in known:
            made = getattr(tables, each.name.lower())(argument)
            table = torch.where((op == int(each))[:, None, None], made, table)
        images = looked_up(images, table)
    for each, blend in _BLENDS.items():
        if each in among:
            mine = (op == int(each))[:, None, None, None]
            images = torch.where(mine, blend(images, argument), images)
    if _WARPS & set(among):
        matrix = _matrices(op, argument, images.shape[2], images.shape[3])
        values = fill if len(fill) == images.shape[1] else fill[:1] * images.shape[1]
        # One by one: a tensor made of a list is a copy from the host in every call.
        filled = torch.stack(
            [torch.full((), v, dtype=torch.uint8, device=images.device) for v in values]
        )
        images = warped(images, matrix, interpolation, filled, cubic)
    return images


def _matrices(op: Tensor, argument: Tensor, height: int, width: int) -> Tensor:
    """The affine map of each sample, float64 `[batch, 6]`; the identity for other ops."""
    value = argument.to(torch.float64)

    def where(wanted: PixelOp) -> Tensor:
        return torch.where(op == int(wanted), value, 0.0)

    angle = where(PixelOp.ROTATE) * (-math.pi / 180.0)
    cos, sin = torch.cos(angle), torch.sin(angle)
    middle_x, middle_y = width / 2.0, height / 2.0
    move_x = middle_x - cos * middle_x - sin * middle_y
    move_y = middle_y + sin * middle_x - cos * middle_y
    return torch.stack(
        (
            cos,
            sin + where(PixelOp.SHEAR_X),
            move_x + where(PixelOp.TRANSLATE_X),
            -sin + where(PixelOp.SHEAR_Y),
            cos,
            move_y + where(PixelOp.TRANSLATE_Y),
        ),
        1,
    )
