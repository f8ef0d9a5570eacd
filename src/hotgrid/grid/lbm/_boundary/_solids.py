"""Shapes of solids: from signed distances, from pictures, and a few ready ones.

A shape is a bool tensor `[*space]`, or a function from the size of a grid to one.
Coordinates are counted in cells, in the order of the axes; the centre of the first
cell is at 0.
"""

from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, MissingPartError
from hotgrid.grid.model import Parameter

Solid = Callable[[tuple[int, ...]], Tensor]
"""A function from the size of a grid to a bool tensor `[*space]`, true where it is solid."""


def from_distance(distance: Callable[..., Tensor]) -> Solid:
    """The solid inside a signed distance function, where it is negative.

    Arguments:
        distance: Called with one float64 tensor `[*space]` for each axis, the
            coordinates of the cells; gives a tensor `[*space]`.

    Example:
        >>> half_plane = from_distance(lambda y, x: y - 1.5)
        >>> half_plane((4, 2)).int()
        tensor([[1, 1],
                [1, 1],
                [0, 0],
                [0, 0]], dtype=torch.int32)
    """

    def solid(size: tuple[int, ...]) -> Tensor:
        axes = [torch.arange(n, dtype=torch.float64) for n in size]
        inside = distance(*torch.meshgrid(*axes, indexing="ij")) < 0
        return inside.expand(size)

    return solid


def ball(centre: Sequence[float], radius: float) -> Solid:
    """A ball; in 2-D a disc.

    Arguments:
        centre: Its middle, in the order of the axes.
        radius: In cells.

    Example:
        >>> ball((2, 2), 1.1)((5, 5)).sum()
        tensor(5)

    Raises:
        ArgumentError: The radius is not above 0.
    """
    middle = _corner("centre", centre)
    reach = Parameter(1.0, above=0).checked("radius", radius)

    def outside(*at: Tensor) -> Tensor:
        _expect_axes("centre", middle, at)
        squares = [(x - c) ** 2 for x, c in zip(at, middle, strict=True)]
        return torch.stack(squares).sum(0) - reach**2

    return from_distance(outside)


def box(low: Sequence[float], high: Sequence[float]) -> Solid:
    """A box between two corners, along the axes.

    Arguments:
        low: The corner with the lowest coordinates, in the order of the axes.
        high: The corner with the highest.

    Example:
        >>> box((1, 1), (2, 3))((4, 5)).sum()
        tensor(6)

    Raises:
        ArgumentError: A low coordinate is above the high one.
    """
    first, last = _corner("low", low), _corner("high", high)
    if len(first) != len(last):
        raise ArgumentError(f"`low` {first} and `high` {last} must have as many coordinates")
    if any(a > b for a, b in zip(first, last, strict=True)):
        raise ArgumentError(f"`low` {first} must not be above `high` {last}")

    def inside(*at: Tensor) -> Tensor:
        _expect_axes("low", first, at)
        found = [(x < a) | (x > b) for x, a, b in zip(at, first, last, strict=True)]
        return torch.stack(found).any(0).double() - 0.5

    return from_distance(inside)


def _corner(name: str, place: object) -> tuple[float, ...]:
    """A place as numbers, one for each axis."""
    found: Any = tuple(place) if isinstance(place, Iterable) else (None,)
    # Tensors of one number are numbers too.
    if not all(isinstance(x, Real) or (isinstance(x, Tensor) and x.ndim == 0) for x in found):
        raise ArgumentError(
            f"`{name}` must be one number for each axis, such as (16, 32), got {place!r}"
        )
    return found


def _expect_axes(name: str, place: tuple[float, ...], at: Sequence[Tensor]) -> None:
    if len(place) != len(at):
        raise ArgumentError(
            f"`{name}` {place} has {len(place)} coordinates, but the grid has {len(at)} dims"
        )


def from_image(image: str | Path | Any, threshold: float = 0.5, dark: bool = True) -> Solid:
    """The solid drawn in a picture, stretched over the grid by nearest pixels.

    Arguments:
        image: A file that matplotlib reads (PNG always), or an array `[h, w]` or
            `[h, w, channels]`, floats from 0 to 1 or bytes from 0 to 255.
        threshold: The brightness between solid and fluid, from 0 to 1.
        dark: Whether dark pixels are the solid; else the bright ones.

    Example:
        >>> from_image(torch.tensor([[0.0, 1.0]]))((2, 4)).int()
        tensor([[1, 1, 0, 0],
                [1, 1, 0, 0]], dtype=torch.int32)

    Raises:
        ArgumentError: The file cannot be read, or the array is not a picture.
        MissingPartError: A file was given and matplotlib is not installed.
    """
    level = Parameter(0.5).checked("threshold", threshold)
    pixels = torch.as_tensor(_read(image) if isinstance(image, str | Path) else image)
    if pixels.ndim not in (2, 3) or 0 in pixels.shape:
        raise ArgumentError(
            f"a picture is [h, w] or [h, w, channels], got {tuple(pixels.shape)}"
        )
    bright = pixels.double() / (255 if pixels.dtype == torch.uint8 else 1)
    if bright.ndim == 3:
        opacity = bright[..., -1] if bright.shape[-1] in (2, 4) else None
        bright = bright[..., :3].mean(-1) if bright.shape[-1] > 2 else bright[..., 0]
        if opacity is not None:
            # Where a picture is transparent nothing is drawn.
            bright = opacity * bright + (1 - opacity) * (1.0 if dark else 0.0)
    drawn = bright < level if dark else bright >= level

    def solid(size: tuple[int, ...]) -> Tensor:
        if len(size) != 2:
            raise ArgumentError(f"a picture is a solid in 2 dims, but the grid is {size}")
        rows, columns = (
            (torch.arange(n) * 2 + 1) * m // (2 * n)
            for n, m in zip(size, drawn.shape, strict=True)
        )
        return drawn[rows][:, columns]

    return solid


def _read(path: str | Path) -> Any:
    try:
        from matplotlib.image import imread
    except ImportError:
        raise MissingPartError(
            "reading a picture needs matplotlib: `pip install matplotlib`, "
            "or give the pixels as an array"
        ) from None
    try:
        return torch.from_numpy(imread(path).copy())
    except (OSError, SyntaxError, ValueError) as problem:
        raise ArgumentError(f"the picture {str(path)!r} cannot be read: {problem}") from None
