"""A solid with a smooth surface: bounce-back that knows where on a link the surface lies."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from hotgrid.grid._model import Input
from hotgrid.grid.lbm import Boundary, Lattice, Site, from_distance
from hotgrid.grid.lbm._boundary import own_name

Distance = Callable[..., Tensor]
"""A signed distance, negative in the solid: of one float64 tensor of places for each axis."""

_HALVINGS = 50


@dataclass(frozen=True, eq=False)
class Curved(Boundary):
    """A solid at rest whose surface may lie anywhere between cells (Bouzidi 2001, linear).

    What flies into the surface comes back, read between cells where it would have been
    one step ago. There are no staircases, and errors fall with the square of the cell.

    Attributes:
        distance: From the size to the signed distance, in cells.
    """

    distance: Callable[[tuple[int, ...]], Distance]
    obstacle: ClassVar[bool] = True

    def cells(self, size: tuple[int, ...]) -> Tensor:
        """The solid cells."""
        return from_distance(self.distance(size))(size)

    def inputs(self, lattice: Lattice) -> tuple[Input, ...]:
        """One number for each link; see `shares`."""
        return (Input("shares", components=lattice.count - 1),)

    def static(self, lattice: Lattice, size: tuple[int, ...]) -> dict[str, Tensor]:
        """One number for each link; see `shares`."""
        return {"shares": self.shares(lattice, size)}

    def shares(self, lattice: Lattice, size: tuple[int, ...]) -> Tensor:
        """What is read where, for every population that comes from the surface.

        Returns:
            `[populations - 1, *space]`: zero where none comes from the surface. Else its
            size is the share of what has left this cell. The rest is read one cell further
            away from the surface if it is positive, and has arrived here if negative.
        """
        solid, distance = self.cells(size), self.distance(size)
        found = torch.zeros(lattice.count - 1, *size, dtype=torch.float64)
        for plane, c in zip(found, lattice.velocities[1:], strict=True):
            cut = torch.roll(solid, c, tuple(range(lattice.rank))) & ~solid
            twice = 2 * _met(distance, cut.nonzero().double(), torch.tensor(c))
            plane[cut] = torch.where(twice < 1, twice, -1 / twice)
        return found

    def select(self, site: Site, pulled: Sequence[Tensor]) -> list[Tensor]:
        """Populations that come from the surface."""
        shares = site.inputs[own_name(site.place, "shares")]
        found = list(pulled)
        for i, c in enumerate(site.lattice.velocities[1:], start=1):
            share = shares.part(i - 1)[site.here]
            leaving = site.f.part(site.lattice.opposite[i])
            back = _returned(share, leaving[site.here], leaving[c], site.f.part(i)[site.here])
            found[i] = torch.where(share != 0, back, pulled[i])
        return found

    def settle(
        self, site: Site, pulled: Sequence[Tensor], collided: Sequence[Tensor]
    ) -> list[Tensor]:
        """Rest in the solid."""
        solid = site.marked()
        return [torch.where(solid, 0.0, plane) for plane in collided]


def force_on_surface(lattice: Lattice, f: Tensor, shares: Tensor) -> list[Tensor]:
    """The force on a curved solid along each axis, by the momentum that links exchange.

    Arguments:
        lattice: The lattice.
        f: The stored populations, `[populations, *space]`.
        shares: What `Curved.shares` gave, on the same device.

    Returns:
        One double 0-d tensor for each axis.
    """
    axes = tuple(range(lattice.rank))
    force = [f.new_zeros((), dtype=torch.float64) for _ in axes]
    for i, c in enumerate(lattice.velocities[1:], start=1):
        leaving = f[lattice.opposite[i]]
        beyond = torch.roll(leaving, [-x for x in c], axes)
        share = shares[i - 1]
        passed = leaving + _returned(share, leaving, beyond, f[i])
        sent = torch.where(share != 0, passed, 0.0).sum(dtype=torch.float64)
        force = [total - x * sent for total, x in zip(force, c, strict=True)]
    return force


def _returned(share: Tensor, leaving: Tensor, beyond: Tensor, arrived: Tensor) -> Tensor:
    rest = torch.where(share > 0, beyond, arrived)
    return rest + share.abs() * (leaving - rest)


def _met(distance: Distance, fluid: Tensor, c: Tensor) -> Tensor:
    """The part of a link at which the surface is met, from fluid cells `[links, rank]`.

    Links point against c. By halving, since all that is asked of a distance is its sign.
    """
    low, high = torch.zeros(2, len(fluid), dtype=torch.float64)
    high += 1
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        inside = distance(*(fluid - middle[:, None] * c).unbind(-1)) < 0
        low, high = torch.where(inside, low, middle), torch.where(inside, middle, high)
    # A surface through a cell's centre is met at once, but zero means no surface.
    return high
