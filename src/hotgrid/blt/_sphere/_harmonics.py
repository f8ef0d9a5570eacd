"""Real spherical harmonics, and how densely points lie in each direction."""

import math

import torch
from torch import Tensor

from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError

_BLOCK = 1 << 15


@checked(units="n 3", returns="n k")
def spherical_harmonics(units: Tensor, degree: int) -> Tensor:
    """Return the real spherical harmonics at directions, in float64.

    They are orthonormal over the sphere, without the phase of Condon and Shortley. Column
    `l * l + l + m` has degree l and order m; orders below 0 go with the sine of the
    longitude.

    Args:
        units: Vectors of length 1.
        degree: The highest degree; there are `(degree + 1) ** 2` columns.

    Raises:
        ArgumentError: The degree is below 0.

    Example:
        >>> spherical_harmonics(torch.tensor([[0.0, 0.0, 1.0]]), 1).shape
        torch.Size([1, 4])
    """
    if degree < 0:
        raise ArgumentError(f"`degree` is {degree}; expected 0 or more")
    x, y, z = units.double().unbind(1)
    found = x.new_empty(len(units), (degree + 1) ** 2)
    # Of (x + iy) ** m, which is cosine and sine of the longitude times a power of the sine
    # of the polar angle; what is left of the Legendre functions is a polynomial in z.
    real, imaginary = torch.ones_like(x), torch.zeros_like(x)
    first = math.sqrt(1 / (4 * math.pi))
    for order in range(degree + 1):
        if order:
            real, imaginary = x * real - y * imaginary, x * imaginary + y * real
            first *= math.sqrt((2 * order + 1) / (2 * order))
        before, now = torch.zeros_like(x), torch.full_like(x, first)
        for level in range(order, degree + 1):
            if level > order:
                up = math.sqrt((4 * level**2 - 1) / (level**2 - order**2))
                down = math.sqrt(((level - 1) ** 2 - order**2) / (4 * (level - 1) ** 2 - 1))
                before, now = now, up * (z * now - down * before)
            middle = level * level + level
            if order == 0:
                found[:, middle] = now
            else:
                found[:, middle + order] = math.sqrt(2) * now * real
                found[:, middle - order] = math.sqrt(2) * now * imaginary
    return found


@checked(units="n 3", returns="n")
def angular_density(units: Tensor, *, degree: int = 16) -> Tensor:
    """Return how densely directions lie around each one of them; 1 is evenly.

    Each direction is spread by the kernel of heat on the sphere, to a width of about
    `180 / degree` degrees, as a sum of harmonics up to the degree.

    Args:
        units: Vectors of length 1.
        degree: More is sharper.

    Raises:
        ArgumentError: The degree is below 1.
    """
    if degree < 1:
        raise ArgumentError(f"`degree` is {degree}; expected at least 1")
    total = torch.zeros((degree + 1) ** 2, dtype=torch.float64, device=units.device)
    for some in units.split(_BLOCK):
        total += spherical_harmonics(some, degree).sum(0)
    levels = torch.arange(degree + 1, dtype=torch.float64, device=units.device)
    # The last degree counts for exp(-5): what is cut off does not show as waves.
    fading = torch.exp(-5 * levels * (levels + 1) / (degree * (degree + 1)))
    weights = total * fading.repeat_interleave((2 * levels + 1).long())
    parts = [spherical_harmonics(some, degree) @ weights for some in units.split(_BLOCK)]
    return torch.cat(parts) * (4 * math.pi / max(1, len(units))) if parts else total[:0]
