"""Digits drawn by strokes, on a few cells."""

from collections.abc import Sequence

import torch
from torch import Tensor

BOX = 20
"""The cells of a digit's side, with an empty margin."""
Strokes = Sequence[Sequence[tuple[float, float]]]
# Lines through points (x, y), in cells from the middle, y downward.
_STROKES: tuple[Strokes, ...] = (
    (
        (
            (0, -6), (2.5, -5), (3.8, -2), (3.8, 2), (2.5, 5), (0, 6), (-2.5, 5), (-3.8, 2),
            (-3.8, -2), (-2.5, -5), (0, -6),
        ),
    ),
    (((0, -6), (0, 6)),),
    (
        (
            (-3.5, -3.5), (-2, -5.6), (0.5, -6), (3, -5), (3.5, -2.8), (2, 0), (-1, 3),
            (-3.8, 6), (4, 6),
        ),
    ),
    (
        (
            (-3.3, -5), (-1, -6), (2, -5.6), (3.2, -3.6), (2, -1), (-0.8, -0.3), (2.4, 0.6),
            (3.7, 3), (2.4, 5.4), (-0.6, 6), (-3.5, 4.8),
        ),
    ),
    (((-2.6, -6), (-3.6, 0.5), (3.8, 0.5)), ((2.4, -6), (1.8, 6))),
    (
        (
            (3.6, -6), (-2.6, -6), (-3, -1), (0.5, -1.4), (3.2, 0.2), (3.6, 3), (1.8, 5.5),
            (-1, 6), (-3.6, 4.8),
        ),
    ),
    (
        (
            (2.2, -6), (-0.8, -4), (-3, -0.5), (-3.4, 3), (-1.8, 5.6), (1, 6), (3.2, 4.2),
            (2.8, 1.6), (0.6, 0.2), (-2, 1.2), (-3.2, 3),
        ),
    ),
    (((-3.8, -6), (3.8, -6), (1, 0), (-1, 6)),),
    (
        (
            (0, -0.4), (-2.6, -2), (-2.6, -4.6), (0, -6), (2.6, -4.6), (2.6, -2), (0, -0.4),
            (-3, 1.6), (-3, 4.4), (0, 6), (3, 4.4), (3, 1.6), (0, -0.4),
        ),
    ),
    (
        (
            (3, -3.2), (1.6, -0.8), (-1.2, -0.2), (-3.2, -2), (-2.8, -4.8), (-0.4, -6),
            (2.2, -5.4), (3.2, -3.2), (2.8, 1), (1.6, 6),
        ),
    ),
)  # fmt: skip


def drawn_digit(digit: int, generator: torch.Generator | None = None) -> Tensor:
    """A digit, 1 where there is ink, `[BOX, BOX]`; the outermost cells have none.

    Arguments:
        digit: From 0 to 9.
        generator: Turns, slants, resizes and shifts it, and changes its width; None leaves it.
    """
    strokes = [torch.tensor(points, dtype=torch.float32) for points in _STROKES[digit]]
    chance = torch.full((7,), 0.5)
    if generator is not None:
        chance = torch.rand(7, generator=generator)
        strokes = [x + 0.4 * torch.randn(x.shape, generator=generator) for x in strokes]
    turn, slant, wide, high, right, down, width = chance.tolist()
    turn, slant = 0.3 * (turn - 0.5), 0.4 * (slant - 0.5)
    change = torch.tensor([[0.85 + 0.3 * wide, turn - slant], [-turn, 0.85 + 0.3 * high]])
    middle = torch.tensor([right - 0.5, down - 0.5]) * 2
    strokes = [points @ change.T + middle for points in strokes]
    ends = torch.cat([torch.stack([x[:-1], x[1:]], 1) for x in strokes])
    return (_distances(ends) < 0.8 + 0.5 * width).float()


def _distances(ends: Tensor) -> Tensor:
    """How far each cell of a box is from the nearest of some lines, `[lines, 2, 2]`."""
    along = torch.arange(BOX) - (BOX - 1) / 2
    cells = torch.cartesian_prod(along, along).flip(-1)[:, None]
    begin, way = ends[:, 0], ends[:, 1] - ends[:, 0]
    share = ((cells - begin) * way).sum(-1) / way.square().sum(-1).clamp(min=1e-6)
    nearest = begin + share.clamp(0, 1)[..., None] * way
    found = (cells - nearest).norm(dim=-1).amin(-1).view(BOX, BOX)
    found[[0, -1]] = found[:, [0, -1]] = torch.inf
    return found
