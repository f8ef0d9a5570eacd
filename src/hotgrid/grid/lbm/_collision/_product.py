"""Lattices of all combinations of -1, 0 and 1: products of one axis after another.

On them equilibrium is a product too, exact to all orders that the lattice can hold, and
moments in the frame that moves with the fluid are taken axis by axis (Geier 2006).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.lbm._lattice import Lattice

# The weights of a single axis.
_WEIGHTS = {0: 2 / 3, 1: 1 / 6, -1: 1 / 6}


def is_product(lattice: Lattice) -> bool:
    """Whether a lattice has all combinations of -1, 0 and 1."""
    return lattice.count == 3**lattice.rank


def expect_product(lattice: Lattice, collision: str) -> None:
    """Refuse a lattice that is not a product."""
    if not is_product(lattice):
        raise ArgumentError(
            f"the collision {collision} takes a lattice with all combinations of -1, 0 and 1, "
            f"and {lattice} lacks some; use D2Q9 or D3Q27"
        )


def product_equilibrium(
    lattice: Lattice, excess: Tensor, momentum: Sequence[Tensor]
) -> list[Tensor]:
    """Shifted populations at equilibrium: density times one factor for each axis.

    Arguments:
        lattice: A product.
        excess: Density minus one, `[*space]`.
        momentum: Density times velocity along each axis, `[*space]` each.
    """
    density = 1 + excess
    volume = density.reciprocal()
    # What the product is above that of the weights, so that no digits are lost.
    found: dict[tuple[int, ...], tuple[float, Any]] = {(): (1.0, None)}
    for part in momentum:
        u = part * volume
        square = u * u
        change = {0: -square, 1: 0.5 * (square + u), -1: 0.5 * (square - u)}
        grown: dict[tuple[int, ...], tuple[float, Any]] = {}
        for c, (weight, above) in found.items():
            for sign, share in _WEIGHTS.items():
                more = weight * change[sign]
                if above is not None:
                    more = above * (share + change[sign]) + more
                grown[*c, sign] = (weight * share, more)
        found = grown
    return [
        w * excess + density * found[c][1]
        for c, w in zip(lattice.velocities, lattice.weights, strict=True)
    ]


def from_central(
    lattice: Lattice, moments: Mapping[tuple[int, ...], Tensor], velocity: Sequence[Tensor]
) -> list[Tensor]:
    """Populations from their moments about a velocity, `[*space]` each.

    Arguments:
        lattice: A product.
        moments: By power of the velocity along each axis, 0 to 2; those left out are 0.
        velocity: The velocity along each axis.
    """
    found = dict(moments)
    for axis, u in enumerate(velocity):
        others = dict.fromkeys((key[:axis], key[axis + 1 :]) for key in found)
        after: dict[tuple[int, ...], Tensor] = {}
        for low, high in others:
            powers = [found.get((*low, n, *high)) for n in range(3)]
            for c, plane in _along(powers, u).items():
                after[*low, c, *high] = plane
        found = after
    nothing = velocity[0] * 0
    return [found.get(c, nothing) for c in lattice.velocities]


def _along(powers: Sequence[Tensor | None], u: Tensor) -> dict[int, Tensor]:
    """Populations by velocity along one axis, from its three moments about `u`."""
    count, first, second = powers
    odd = [count * u] if count is not None else []
    even = [count * (u * u)] if count is not None else []
    if first is not None:
        odd, even = [*odd, first], [*even, (2 * u) * first]
    if second is not None:
        even = [*even, second]
    both = 0.5 * sum(even[1:], even[0])
    rest = -2 * both if count is None else count - 2 * both
    if not odd:
        return {0: rest, 1: both, -1: both}
    half = 0.5 * sum(odd[1:], odd[0])
    return {0: rest, 1: both + half, -1: both - half}
