"""How a flow starts: populations that fit a density, a velocity and its gradients.

Equilibrium alone carries no viscous stress. A flow that starts from it has to build the
stress up within its first steps, and rings meanwhile. So the part of a population that
gradients of the velocity cause is there from the beginning (Chapman and Enskog, to first
order).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ._boundary import Face
from ._collision import Collision
from ._lattice import Lattice
from ._moments import at_equilibrium, combined, half_source, slab_rows

START_REACH = 2
"""Cells to either side that a derivative uses."""


def at_start(
    lattice: Lattice,
    density: Tensor,
    velocity: Sequence[Tensor],
    *,
    collision: Collision,
    tau: Tensor | float,
    force: Sequence[Any],
    faces: Sequence[Face],
    solid: Tensor | None,
) -> Tensor:
    """The stored state `[populations, *space]` of a flow: what a collision would have left.

    Arguments:
        lattice: The lattice.
        density: The density, `[*space]`.
        velocity: The velocity along each axis, `[*space]` each.
        collision: How populations relax.
        tau: The relaxation time of the viscosity, a number or `[*space]`.
        force: Force on a cell along each axis, numbers; empty for none.
        faces: The faces of the grid that have a boundary; the others are periodic.
        solid: Where there is no fluid, bool `[*space]`; None without obstacles.
    """
    found = at_equilibrium(lattice, density, velocity)
    if not force and all(bool((u == u.flatten()[0]).all()) for u in velocity):
        return found
    fluid = torch.ones_like(density, dtype=torch.bool) if solid is None else ~solid
    tau = torch.as_tensor(tau, dtype=found.dtype).expand(density.shape)
    rows = slab_rows(density)
    for at in range(0, len(density), rows):
        here = slice(at, min(at + rows, len(density)))
        strain = _strain(*_around(velocity, fluid, here, faces))
        # What comes into a collision deviates by `tau` times the change along the way of a
        # step, and one of these the collision takes away.
        left = 3 * density[here] * (1 - collision.stress_time(tau[here], strain))
        for i, change in _changes(lattice, strain):
            found[i, here] += lattice.weights[i] * left * change
        if force:
            u = [x[here].to(found.dtype) for x in velocity]
            found[:, here] += torch.stack(half_source(lattice, u, force))
    return found


def _around(
    velocity: Sequence[Tensor], fluid: Tensor, here: slice, faces: Sequence[Face]
) -> tuple[list[Tensor], Tensor]:
    """Velocity and fluid of some rows with two cells more at each end of every axis.

    Axes without faces are periodic. Beyond a face there is no fluid, or its mirror image.
    """
    parts, rank = [*velocity, fluid], fluid.ndim
    for axis, n in enumerate(fluid.shape):
        first, end = (here.start, here.stop) if axis == 0 else (0, n)
        places = torch.arange(first - START_REACH, end + START_REACH)
        mirrors = {face.inward: face.mirrors for face in faces if face.axis(rank) == axis}
        if not mirrors:
            parts = [x.index_select(axis, places % n) for x in parts]
            continue
        below, above = places < 0, places >= n
        image = torch.where(below, -1 - places, torch.where(above, 2 * n - 1 - places, places))
        parts = [x.index_select(axis, image.clamp(0, n - 1)) for x in parts]
        shape = [-1 if other == axis else 1 for other in range(rank)]
        parts[axis] = torch.where((below | above).view(shape), -parts[axis], parts[axis])
        dry = (below & (not mirrors.get(1))) | (above & (not mirrors.get(-1)))
        parts[-1] = parts[-1] & ~dry.view(shape)
    return parts[:-1], parts[-1]


def _strain(velocity: Sequence[Tensor], fluid: Tensor) -> dict[tuple[int, int], Tensor]:
    """The strain rate of the inner cells by pair of axes, upper half only."""
    axes = range(len(velocity))
    slopes = {(a, b): _slope(velocity[a], fluid, b) for a in axes for b in axes}
    return {(a, b): (slopes[a, b] + slopes[b, a]) / 2 for a in axes for b in axes[a:]}


def _slope(plane: Tensor, fluid: Tensor, axis: int) -> Tensor:
    """The derivative along an axis at the inner cells.

    Central, of fourth order in the open; one-sided with fluid on one side only.
    """
    u, wet = _along(plane, axis), _along(fluid, axis)
    sides = (wet[1].int() + wet[3]).clamp(1)
    near = ((u[3] - u[2]) * wet[3] + (u[2] - u[1]) * wet[1]) / sides
    wide = (8 * (u[3] - u[1]) - (u[4] - u[0])) / 12
    return torch.where(wet[0] & wet[1] & wet[3] & wet[4], wide, near)


def _along(x: Tensor, axis: int) -> list[Tensor]:
    """Inner cells and their neighbours along an axis, from two cells below to two above."""
    for other in range(x.ndim):
        if other != axis:
            x = x.narrow(other, START_REACH, x.shape[other] - 2 * START_REACH)
    inner = x.shape[axis] - 2 * START_REACH
    return [x.narrow(axis, k, inner) for k in range(2 * START_REACH + 1)]


def _changes(
    lattice: Lattice, strain: Mapping[tuple[int, int], Tensor]
) -> Iterator[tuple[int, Tensor]]:
    """By how much gradients change equilibrium along the way of a step, by population.

    Over weight, density and the 3 of the lattice; the same for a population and its opposite.
    """
    third = combined([1] * lattice.rank, [strain[a, a] for a in range(lattice.rank)]) / 3
    # Off the diagonal each pair of axes counts twice.
    terms = [plane if a == b else 2 * plane for (a, b), plane in strain.items()]
    yield 0, -third
    for i, o in lattice.pairs:
        c = lattice.velocities[i]
        change = combined([c[a] * c[b] for a, b in strain], terms) - third
        yield i, change
        yield o, change
