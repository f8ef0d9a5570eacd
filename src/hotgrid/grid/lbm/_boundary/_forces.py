"""The force of a fluid on a solid, by the momentum that populations exchange with it."""

from collections.abc import Sequence

import torch
from torch import Tensor

from hotgrid.grid.lbm._lattice import Lattice


def cut_links(lattice: Lattice, solid: Tensor) -> list[Tensor]:
    """For each population the flat places of fluid cells from which it flies into the solid.

    Arguments:
        lattice: The lattice.
        solid: Where it is solid, bool `[*space]`; the grid is periodic.

    Example:
        >>> from hotgrid.grid.lbm import D2Q9
        >>> solid = torch.zeros(5, 5, dtype=torch.bool)
        >>> solid[2, 2] = True
        >>> [len(cells) for cells in cut_links(D2Q9, solid)]
        [0, 1, 1, 1, 1, 1, 1, 1, 1]
    """
    dims = tuple(range(lattice.rank))
    found: list[Tensor] = []
    for c in lattice.velocities:
        ahead = torch.roll(solid, [-x for x in c], dims)
        found.append((ahead & ~solid).flatten().nonzero().flatten())
    return found


def exchanged_momentum(
    lattice: Lattice,
    f: Tensor,
    links: Sequence[Tensor],
    velocity: Sequence[float] = (),
    late: bool = False,
) -> list[Tensor]:
    """The force on a solid along each axis, one double 0-d tensor each.

    The pressure of a fluid at rest with a density of one is left out; on a closed body
    it adds up to nothing.

    Arguments:
        lattice: The lattice.
        f: The stored populations, `[populations, *space]`.
        links: What `cut_links` gave.
        velocity: Velocity of the solid along each axis.
        late: The solid sends populations back one step later (full-way walls), and
            they are read from its cells.

    Example:
        >>> from hotgrid.grid.lbm import D2Q9
        >>> solid = torch.zeros(5, 5, dtype=torch.bool)
        >>> solid[2, 2] = True
        >>> wind = torch.zeros(9, 5, 5)
        >>> wind[1] = 0.5
        >>> exchanged_momentum(D2Q9, wind, cut_links(D2Q9, solid))[1]
        tensor(1., dtype=torch.float64)
    """
    total = [f.new_zeros((), dtype=torch.float64) for _ in range(lattice.rank)]
    space = f.shape[1:]
    for i, cells in enumerate(links):
        c = lattice.velocities[i]
        leaving = f[i].flatten()[cells].double()
        if late:
            ahead = torch.roll(
                f[lattice.opposite[i]], [-x for x in c], tuple(range(len(space)))
            )
            returning = ahead.flatten()[cells].double()
        else:
            push = sum(x * u for x, u in zip(c, velocity, strict=True)) if velocity else 0.0
            returning = leaving - 6 * lattice.weights[i] * push
        passed = (leaving + returning).sum()
        total = [t + x * passed for t, x in zip(total, c, strict=True)]
    return total
