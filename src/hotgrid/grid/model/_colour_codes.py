"""Colours as whole numbers, for views that show colours instead of a colour map."""

import torch
from torch import Tensor

# Shades of red, green and blue: as many as fit into a byte beside the one of solid cells.
_SHADES = (6, 7, 6)


def colour_codes(colours: Tensor) -> Tensor:
    """The nearest of 252 colours, uint8 `[*space]`, for views that a model lists in `coloured`.

    Arguments:
        colours: Red, green and blue from 0 to 1, `[3, *space]`.

    Example:
        >>> colour_codes(torch.tensor([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]))
        tensor([  0, 251], dtype=torch.uint8)
    """
    shades = [
        (x.float().clamp(0, 1) * (count - 1) + 0.5).to(torch.uint8)
        for x, count in zip(colours.unbind(0), _SHADES, strict=True)
    ]
    return (shades[0] * _SHADES[1] + shades[1]) * _SHADES[2] + shades[2]


def coded_colours() -> Tensor:
    """Red, green and blue from 0 to 1 of every code, `[252, 3]`.

    Example:
        >>> coded_colours()[251]
        tensor([1., 1., 1.])
    """
    axes = [torch.linspace(0, 1, count) for count in _SHADES]
    return torch.cartesian_prod(*axes)
