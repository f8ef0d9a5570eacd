"""A solid with a smooth surface: bounce-back at the point where a link crosses it."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.lbm._lattice import Lattice
from hotgrid.grid.model import Input, expect_callable

from ._boundary import Boundary, Site, own_name
from ._solids import from_distance

_HALVINGS = 50
# Zero means that a link is not cut, and half precision knows no smaller numbers than this.
_LEAST = 1e-6


class _Links(NamedTuple):
    """Where one population comes from the surface: flat places, one number for each link."""

    cells: Tensor
    further: Tensor
    shares: Tensor


@dataclass(frozen=True, eq=False)
class Curved(Boundary):
    """A solid at rest whose surface may be anywhere between cells (Bouzidi 2001, linear).

    Populations bounce back from the surface, interpolated between cells to where they were one
    step ago to arrive now. `HalfWay` turns a curved surface into stairs; this follows
    it, and errors fall with the square of the cell size. A little mass is lost or gained
    at the surface; that falls, too.

    Attributes:
        distance: Negative in the solid, zero on its surface: called with the size of the
            grid, and one float64 tensor of places for each axis, in cells; gives a tensor
            of the same shape. Only its sign matters.

    Example:
        >>> from hotgrid.grid import lbm
        >>> disc = lbm.Curved(lambda size, y, x: torch.hypot(y - 16, x - 16) - 4)
        >>> disc.cells((32, 32)).sum()
        tensor(45)
    """

    distance: Callable[..., Tensor]
    obstacle: ClassVar[bool] = True
    quiet_elsewhere: ClassVar[bool] = True

    def __post_init__(self) -> None:
        expect_callable("distance", self.distance, "the size and one tensor for each axis")

    @property
    def leaks(self) -> bool:
        """Interpolation between cells loses or adds a little mass."""
        return True

    def cells(self, size: tuple[int, ...]) -> Tensor:
        """The solid cells."""
        try:
            inspect.signature(self.distance).bind(size, *size)
        except TypeError:
            names = ", ".join("zyx"[-len(size) :])
            raise ArgumentError(
                f"`distance` must take the arguments distance(size, {names}) on a grid of "
                f"{size}, got {self.distance!r}"
            ) from None
        return from_distance(partial(self.distance, size))(size)

    def inputs(self, lattice: Lattice) -> tuple[Input, ...]:
        """One number for each link; see `shares`."""
        return (Input("shares", components=lattice.count - 1, quiet_at_zero=True),)

    def static(self, lattice: Lattice, size: tuple[int, ...]) -> dict[str, Tensor]:
        """One number for each link; see `shares`."""
        return {"shares": self.shares(lattice, size)}

    def shares(self, lattice: Lattice, size: tuple[int, ...]) -> Tensor:
        """The cells to read, for every population that comes from the surface.

        Returns:
            `[populations - 1, *space]`: zero where none comes from the surface. Else its
            size is the share of what has left this cell. The rest is read one cell further
            away from the surface if it is positive, and has arrived here if negative.
        """
        solid, axes = self.cells(size), tuple(range(lattice.rank))
        found = torch.zeros(lattice.count - 1, *size, dtype=torch.float64)
        for plane, c in zip(found, lattice.velocities[1:], strict=True):
            cut = torch.roll(solid, c, axes) & ~solid
            twice = 2 * self._met(size, cut.nonzero().double(), torch.tensor(c))
            # In a gap one cell wide there is nothing to read further away.
            gap = torch.roll(solid, [-x for x in c], axes)[cut] & (twice < 1)
            plane[cut] = torch.where(twice < 1, twice, -1 / twice).where(~gap, -1.0)
        return found

    def select(self, site: Site, pulled: Sequence[Tensor]) -> list[Tensor]:
        """The populations from the surface in place of those pulled out of the solid."""
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

    def links(
        self, lattice: Lattice, size: tuple[int, ...], device: torch.device | str
    ) -> list[_Links]:
        """The places of the links that are cut and what is read there, by population."""
        places = torch.arange(torch.Size(size).numel()).reshape(size)
        found: list[_Links] = []
        for plane, c in zip(self.shares(lattice, size), lattice.velocities[1:], strict=True):
            cut = plane != 0
            further = torch.roll(places, [-x for x in c], tuple(range(lattice.rank)))
            parts = (x[cut].to(device) for x in (places, further, plane))
            found.append(_Links(*parts))
        return found

    def force(
        self, lattice: Lattice, f: Tensor, links: Any, numbers: Mapping[str, float]
    ) -> list[Tensor]:
        """The momentum that the cut links take from the fluid in a step, along each axis."""
        total = [f.new_zeros((), dtype=torch.float64) for _ in range(lattice.rank)]
        for i, (cells, further, share) in enumerate(links, start=1):
            away = f[lattice.opposite[i]].flatten()
            leaving = away[cells].double()
            back = _returned(
                share, leaving, away[further].double(), f[i].flatten()[cells].double()
            )
            passed = (leaving + back).sum()
            total = [t - x * passed for t, x in zip(total, lattice.velocities[i], strict=True)]
        return total

    def _met(self, size: tuple[int, ...], fluid: Tensor, c: Tensor) -> Tensor:
        """The fraction of a link at the surface, from fluid cells `[links, rank]`.

        Links point against c. By bisection, since only the sign of the distance matters.
        """
        low, high = fluid.new_zeros(len(fluid)), fluid.new_ones(len(fluid))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            inside = self.distance(size, *(fluid - middle[:, None] * c).unbind(-1)) < 0
            low, high = torch.where(inside, low, middle), torch.where(inside, middle, high)
        return high.clamp(min=_LEAST)


def _returned(share: Tensor, leaving: Tensor, further: Tensor, arrived: Tensor) -> Tensor:
    rest = torch.where(share > 0, further, arrived)
    return rest + share.abs() * (leaving - rest)
