"""Affine maps of images, each sample with its own, as Pillow's Image.transform."""

from typing import Literal, TypeAlias

import torch
from torch import Tensor

Interpolation: TypeAlias = Literal["nearest", "bilinear", "bicubic", "random"]
_FIXED = 65536.0
# How many channels go into one int32.
_TOGETHER = 3


def warped(
    images: Tensor,
    matrix: Tensor,
    interpolation: Interpolation,
    fill: Tensor,
    cubic: Tensor | None = None,
) -> Tensor:
    """Return images whose pixel (x, y) is that at `matrix` times (x, y) before.

    Channels are packed into one number where pixels are found and weighed, so a compiled
    function does both once for a pixel, and not for each of its channels.

    Args:
        images: uint8.
        matrix: The six numbers of each sample's map, float64 `[batch, 6]`, as Pillow has them.
        interpolation: Between pixels; `random` is bicubic where `cubic` says so, else bilinear.
        fill: What comes from outside, `[channels]` uint8.
        cubic: For `random`.
    """
    groups = images.split(_TOGETHER, 1)
    if interpolation == "nearest":
        made = [_nearest(some, matrix) for some in groups]
    else:
        made = [_between(some, matrix, interpolation, cubic) for some in groups]
    parts: list[Tensor] = []
    for some, (packed, _) in zip(groups, made, strict=True):
        shifts = 8 * torch.arange(some.shape[1], device=images.device)
        parts.append((packed[:, None] >> shifts[:, None, None] & 255).to(torch.uint8))
    inside = made[0][1]
    found = parts[0] if len(parts) == 1 else torch.cat(parts, 1)
    return torch.where(inside[:, None], found, fill[:, None, None])


def _between(
    images: Tensor, matrix: Tensor, interpolation: Interpolation, cubic: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Weighed means of neighbours, packed, and which are inside the image."""
    height, width = images.shape[2:]
    x, y = _grid(images, torch.float32)
    a, b, c, d, e, f = (each[:, None, None] for each in matrix.to(torch.float32).unbind(1))
    at_x = a * (x + 0.5) + b * (y + 0.5) + c
    at_y = d * (x + 0.5) + e * (y + 0.5) + f
    inside = (at_x >= 0) & (at_x < width) & (at_y >= 0) & (at_y < height)
    left, top = (at_x - 0.5).floor(), (at_y - 0.5).floor()
    across, down = at_x - 0.5 - left, at_y - 0.5 - top
    choice = None if cubic is None else cubic[:, None, None]
    weights_x = _weights(across, interpolation, choice)
    weights_y = _weights(down, interpolation, choice)
    first = 0 if len(weights_x) == 2 else -1
    flat = _packed([each.to(torch.int32) for each in images.unbind(1)])
    totals = [torch.zeros((), device=images.device)] * images.shape[1]
    for row, weight_y in enumerate(weights_y, first):
        lines = [torch.zeros((), device=images.device)] * images.shape[1]
        place_y = (top + row).clamp(0, height - 1).to(torch.int64) * width
        for column, weight_x in enumerate(weights_x, first):
            place = place_y + (left + column).clamp(0, width - 1).to(torch.int64)
            taken = _taken(flat, place)
            lines = [line + weight_x * (taken >> 8 * n & 255) for n, line in enumerate(lines)]
        totals = [total + weight_y * line for total, line in zip(totals, lines, strict=True)]
    # Pillow cuts off fractions; a little is added for those that rounding has cut short.
    made = [(total + 2e-3).clamp(0.0, 255.0).to(torch.int32) for total in totals]
    return _packed(made), inside


def _nearest(images: Tensor, matrix: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest pixel, packed: in fixed point, as Pillow does it, the same bits."""
    height, width = images.shape[2:]
    a, b, c, d, e, f = matrix.unbind(1)
    x, y = _grid(images, torch.int64)
    fixed = [
        (each * _FIXED + 0.5).floor().to(torch.int64)[:, None, None]
        for each in (a, b, c + 0.5 * a + 0.5 * b, d, e, f + 0.5 * d + 0.5 * e)
    ]
    at_x = fixed[2] + x * fixed[0] + y * fixed[1] >> 16
    at_y = fixed[5] + x * fixed[3] + y * fixed[4] >> 16
    inside = (at_x >= 0) & (at_x < width) & (at_y >= 0) & (at_y < height)
    place = at_y.clamp(0, height - 1) * width + at_x.clamp(0, width - 1)
    flat = _packed([each.to(torch.int32) for each in images.unbind(1)])
    return _taken(flat, place), inside


def _packed(bytes_: list[Tensor]) -> Tensor:
    """Bytes of up to three channels in one number."""
    found = bytes_[0]
    for n, each in enumerate(bytes_[1:], 1):
        found = found | each << 8 * n
    return found


def _taken(flat: Tensor, place: Tensor) -> Tensor:
    """Numbers of an image at places `[batch, height, width]`."""
    return flat.flatten(1).gather(1, place.flatten(1)).view(place.shape)


def _grid(images: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    height, width = images.shape[2:]
    x = torch.arange(width, device=images.device).to(dtype)
    y = torch.arange(height, device=images.device).to(dtype)[:, None]
    return x, y


def _weights(
    d: Tensor, interpolation: Interpolation, cubic: Tensor | None
) -> tuple[Tensor, ...]:
    """Weights of two or four neighbours at a distance `d` after the first or second."""
    if interpolation == "bilinear":
        return 1.0 - d, d
    square, cube = d * d, d * d * d
    wide = (2 * square - d - cube, 1 - 2 * square + cube, d + square - cube, cube - square)
    if interpolation == "bicubic" or cubic is None:
        return wide
    narrow = (torch.zeros_like(d), 1.0 - d, d, torch.zeros_like(d))
    return tuple(torch.where(cubic, w, n) for w, n in zip(wide, narrow, strict=True))
