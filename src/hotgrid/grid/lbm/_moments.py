"""From populations to density and momentum, and back to equilibrium.

Populations are stored shifted by their weights, `g = f - w`: what is left is small,
which keeps digits in single precision and makes half precision possible. Sums are
written out over planes, so that a whole step stays one expression and one kernel.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from ._lattice import Lattice

# Cells of a slab.
_AT_ONCE = 1 << 17


def combined(signs: Sequence[int], terms: Sequence[Any]) -> Any:
    """The sum of terms times -1, 0 or 1, without a multiplication; None if all are 0."""
    found = None
    for sign, term in zip(signs, terms, strict=True):
        if sign and found is None:
            found = term if sign > 0 else -term
        elif sign:
            found = found + term if sign > 0 else found - term
    return found


def is_zero(number: Any) -> bool:
    """Whether something is the plain number zero, so that its terms can be left out."""
    return not isinstance(number, Tensor | str) and number == 0


def moments(lattice: Lattice, g: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Density minus one, and momentum along each axis, `[*space]` each.

    Arguments:
        lattice: The lattice.
        g: One shifted population `[*space]` for each velocity.

    Example:
        >>> from hotgrid.grid.lbm import D2Q9
        >>> g = [torch.zeros(4, 4)] * 9
        >>> excess, momentum = moments(D2Q9, g)
        >>> excess.shape, len(momentum)
        (torch.Size([4, 4]), 2)
    """
    excess = g[0]
    for i, o in lattice.pairs:
        excess = excess + (g[i] + g[o])
    across = [g[i] - g[o] for i, o in lattice.pairs]
    momentum = [
        combined([lattice.velocities[i][axis] for i, _ in lattice.pairs], across)
        for axis in range(lattice.rank)
    ]
    return excess, momentum


def equilibrium(lattice: Lattice, excess: Tensor, momentum: Sequence[Tensor]) -> list[Tensor]:
    """The shifted populations of a fluid at rest in the frame that moves with it.

    Arguments:
        lattice: The lattice.
        excess: Density minus one, `[*space]`.
        momentum: Density times velocity along each axis, `[*space]` each.

    Returns:
        One `[*space]` for each velocity of the lattice.

    Example:
        >>> from hotgrid.grid.lbm import D2Q9
        >>> zero = torch.zeros(4, 4)
        >>> len(equilibrium(D2Q9, zero, [zero, zero]))
        9
    """
    rest, parts = equilibrium_parts(lattice, excess, momentum)
    found = [rest] * lattice.count
    for (i, o), (even, odd) in zip(lattice.pairs, parts, strict=True):
        found[i], found[o] = even + odd, even - odd
    return found


def equilibrium_parts(
    lattice: Lattice,
    excess: Tensor,
    momentum: Sequence[Tensor],
    even_rate: Any = 1.0,
    odd_rate: Any = 1.0,
) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
    """Equilibrium as even and odd parts of opposite populations, times a rate each.

    A rate goes into factors that are there anyway, so it costs nothing. Velocities do not
    occur: momentum is used while the division is running, because a CPU waits
    for the longest chain of operations, which contains the division.

    Arguments:
        lattice: The lattice.
        excess: Density minus one, `[*space]`.
        momentum: Density times velocity along each axis, `[*space]` each.
        even_rate: What the population at rest and the even parts are multiplied by.
        odd_rate: What the odd parts are multiplied by.

    Returns:
        The population at rest, and an even and an odd part for each pair of the lattice.
    """
    volume = (1 + excess).reciprocal()
    energy = combined([1] * lattice.rank, [m * m for m in momentum])
    base = excess - (1.5 * energy) * volume
    weighted = {w: (w * even_rate) * base for w in lattice.weights}
    parts = []
    for i, _ in lattice.pairs:
        w, along = lattice.weights[i], combined(lattice.velocities[i], momentum)
        # The volume times its factor, kept for all pairs, would be 2 % faster on a CPU and
        # cost a GPU the registers of 4 % of its bandwidth (measured, flow with walls).
        even = weighted[w] + (4.5 * w * even_rate) * ((along * along) * volume)
        parts.append((even, (3 * w * odd_rate) * along))
    return weighted[lattice.weights[0]], parts


def half_source(
    lattice: Lattice, velocity: Sequence[Tensor], force: Sequence[Any]
) -> list[Tensor]:
    """Half of Guo's source of momentum for each population, before relaxation.

    Arguments:
        lattice: The lattice.
        velocity: Velocity along each axis, `[*space]` each, half the force included.
        force: Force on a cell along each axis, numbers or tensors; not all of them 0.
    """
    acts = [int(not is_zero(f)) for f in force]
    work = combined(acts, [f * u for f, u in zip(force, velocity, strict=True)])
    found = [(-1.5 * w) * work for w in lattice.weights]
    for i, o in lattice.pairs:
        w, c = lattice.weights[i], lattice.velocities[i]
        along = combined([a * b for a, b in zip(acts, c, strict=True)], force)
        if along is not None:
            even = found[i] + (4.5 * w) * (along * combined(c, velocity))
            odd = (1.5 * w) * along
            found[i], found[o] = even + odd, even - odd
    return found


def slopes_around(lattice: Lattice, value: Callable[[tuple[int, ...]], Tensor]) -> list[Tensor]:
    """`sum w_i value(c_i) c_i` along each axis, `[*space]` each: a third of the gradient.

    Arguments:
        lattice: The lattice.
        value: What the cell at an offset has, `[*space]`.
    """
    found: list[Any] = [None] * lattice.rank
    for i, o in lattice.pairs:
        c, w = lattice.velocities[i], lattice.weights[i]
        ahead, behind = (value(lattice.velocities[k]) for k in (i, o))
        pull = w * (ahead - behind)
        for axis, sign in enumerate(c):
            if sign:
                more = pull if sign > 0 else -pull
                found[axis] = more if found[axis] is None else found[axis] + more
    return found


def at_equilibrium(lattice: Lattice, density: Tensor, velocity: Sequence[Tensor]) -> Tensor:
    """The stored state `[populations, *space]` for a density and a velocity `[*space]`.

    Example:
        >>> from hotgrid.grid.lbm import D2Q9
        >>> rest = torch.zeros(4, 4)
        >>> at_equilibrium(D2Q9, torch.ones(4, 4), [rest, rest]).abs().max()
        tensor(0.)
    """
    density, *velocity = torch.broadcast_tensors(density, *velocity)
    dtype = reduce(torch.promote_types, [x.dtype for x in (density, *velocity)])
    found = density.new_empty((lattice.count, *density.shape), dtype=dtype)
    # Slab by slab: intermediate results take more memory than the result.
    rows = slab_rows(density)
    for at in range(0, len(density), rows):
        here = slice(at, at + rows)
        momentum = [density[here] * x[here] for x in velocity]
        found[:, here] = torch.stack(equilibrium(lattice, density[here] - 1, momentum))
    return found


def slab_rows(plane: Tensor) -> int:
    """How many rows of a plane to compute with at once."""
    return max(1, _AT_ONCE * len(plane) // max(1, plane.numel()))
