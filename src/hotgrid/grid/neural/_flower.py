"""A flower, drawn by formula: what `GrowingCA` learned to grow."""

import math

import torch
from torch import Tensor

# Each pixel is the mean of so many points along a side.
_POINTS = 4
_PETALS = 5


def flower(side: int = 24) -> Tensor:
    """Red, green, blue and alpha of a flower, `[4, side, side]`, multiplied by alpha.

    Example:
        >>> flower(24).shape
        torch.Size([4, 24, 24])
    """
    fine = side * _POINTS
    axis = (torch.arange(fine) + 0.5) / fine * 2 - 1
    y, x = axis[:, None], axis[None, :]
    picture = torch.zeros(4, fine, fine)

    def paint(where: Tensor, red: float, green: float, blue: float) -> None:
        for channel, value in zip(picture, (red, green, blue, 1.0), strict=True):
            channel[where] = value

    # The stem bends to the left, with a leaf on either side.
    paint(((x + 0.12 * (y - 0.2) ** 2).abs() < 0.07) & (y > 0.1) & (y < 0.96), 0.16, 0.5, 0.2)
    for side_of, height in ((-1, 0.66), (1, 0.78)):
        along = (x - 0.22 * side_of) * side_of + (y - height)
        apart = (x - 0.22 * side_of) * side_of - (y - height)
        paint((along / 0.1) ** 2 + (apart / 0.34) ** 2 < 1, 0.3, 0.68, 0.25)
    middle = y + 0.3
    for petal in range(_PETALS):
        turn = 2 * math.pi * petal / _PETALS - math.pi / 2
        out = x * math.cos(turn) + middle * math.sin(turn)
        across = middle * math.cos(turn) - x * math.sin(turn)
        shape = ((out - 0.38) / 0.3) ** 2 + (across / 0.23) ** 2 < 1
        paint(shape, 0.9, 0.25 + 0.1 * (petal % 2), 0.5)
    paint(x**2 + middle**2 < 0.2**2, 0.98, 0.8, 0.2)
    return picture.unflatten(2, (side, _POINTS)).unflatten(1, (side, _POINTS)).mean((2, 4))
