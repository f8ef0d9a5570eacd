"""Digits drawn by formula, each a little different: what `DigitsCA` learned to read."""

import math

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError

SIDE = 18
"""Cells along a side of one drawn digit, margin included."""

# Corners of the strokes in a unit square, x to the right and y down.
_STROKES = (
    tuple((0.5 + 0.28 * math.sin(k * math.pi / 6), 0.5 - 0.42 * math.cos(k * math.pi / 6))
          for k in range(13)),
    ((0.32, 0.28), (0.55, 0.1), (0.55, 0.92)),
    ((0.2, 0.3), (0.3, 0.13), (0.5, 0.08), (0.72, 0.16), (0.76, 0.34), (0.6, 0.55), (0.2, 0.9),
     (0.82, 0.9)),
    ((0.22, 0.15), (0.5, 0.08), (0.74, 0.2), (0.72, 0.38), (0.45, 0.48), (0.75, 0.6),
     (0.76, 0.8), (0.5, 0.93), (0.2, 0.84)),
    ((0.65, 0.92), (0.65, 0.1), (0.2, 0.64), (0.84, 0.64)),
    ((0.76, 0.1), (0.3, 0.1), (0.26, 0.46), (0.55, 0.42), (0.77, 0.58), (0.72, 0.82),
     (0.48, 0.93), (0.2, 0.84)),
    ((0.68, 0.1), (0.4, 0.25), (0.25, 0.55), (0.28, 0.8), (0.5, 0.93), (0.73, 0.8),
     (0.72, 0.6), (0.5, 0.5), (0.28, 0.64)),
    ((0.2, 0.1), (0.8, 0.1), (0.42, 0.92)),
    ((0.5, 0.48), (0.28, 0.36), (0.3, 0.16), (0.5, 0.08), (0.7, 0.16), (0.72, 0.36),
     (0.5, 0.48), (0.25, 0.64), (0.26, 0.84), (0.5, 0.93), (0.74, 0.84), (0.75, 0.64),
     (0.5, 0.48)),
    ((0.72, 0.38), (0.5, 0.5), (0.29, 0.4), (0.28, 0.2), (0.5, 0.08), (0.7, 0.18),
     (0.74, 0.42), (0.66, 0.7), (0.42, 0.92)),
)  # fmt: skip
_CORNERS = max(map(len, _STROKES))
_AT_ONCE = 512


def drawn_digits(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Pictures of digits and what they are: `[count, SIDE, SIDE]` from 0 to 1, `[count]`.

    Each is turned, slanted, stretched, moved and drawn with a pen of another width; the corners
    of its strokes are moved too.

    Example:
        >>> pictures, digits = drawn_digits(4, torch.Generator().manual_seed(0))
        >>> pictures.shape, digits.shape
        (torch.Size([4, 18, 18]), torch.Size([4]))
    """
    if count < 1:
        raise ArgumentError(f"`count` must be at least 1, got {count!r}")
    digits = torch.randint(0, 10, (count,), generator=generator)
    corners = torch.tensor([(*s, *[s[-1]] * (_CORNERS - len(s))) for s in _STROKES])[digits]

    def drawn(spread: float, *shape: int) -> Tensor:
        return (torch.rand(count, *shape, generator=generator) * 2 - 1) * spread

    moved = corners - 0.5 + drawn(0.035, _CORNERS, 2)
    turn, slant = drawn(0.2, 1), drawn(0.2, 1)
    wide, high = 0.78 + drawn(0.12, 1), 0.84 + drawn(0.1, 1)
    x, y = moved[..., 0] * wide, moved[..., 1] * high
    x = x - slant * y
    x, y = x * turn.cos() - y * turn.sin(), x * turn.sin() + y * turn.cos()
    strokes = torch.stack([x, y], -1) + 0.5 + drawn(0.06, 1, 2)
    pens = 0.055 + drawn(0.02, 1, 1)
    parts = zip(strokes.split(_AT_ONCE), pens.split(_AT_ONCE), strict=True)
    return torch.cat([_inked(*part) for part in parts]), digits


def _inked(strokes: Tensor, pens: Tensor) -> Tensor:
    """Pictures `[n, SIDE, SIDE]` of strokes `[n, corners, 2]`."""
    axis = (torch.arange(SIDE) + 0.5) / SIDE
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    points = torch.stack([x, y], -1).view(1, 1, -1, 2)
    begin, end = strokes[:, :-1, None], strokes[:, 1:, None]
    along = end - begin
    length = (along**2).sum(-1).clamp(min=1e-9)
    share = (((points - begin) * along).sum(-1) / length).clamp(0, 1)
    away = (begin + share[..., None] * along - points).norm(dim=-1).amin(1)
    return ((pens[..., 0] - away) * SIDE + 0.5).clamp(0, 1).view(-1, SIDE, SIDE)
