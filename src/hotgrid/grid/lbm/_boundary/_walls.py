"""Walls: bounce-back half-way and full-way, moving walls, and walls without friction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.lbm._lattice import Lattice
from hotgrid.grid.lbm._moments import is_zero
from hotgrid.grid.model import Input

from ._boundary import (
    Boundary,
    Face,
    Number,
    Shape,
    Site,
    check_number,
    check_vector,
    dotted,
    has_bits,
    spread,
)
from ._forces import exchanged_momentum


def bounced(site: Site, index: int, velocity: Sequence[Number]) -> Tensor:
    """A population that bounces back from a wall half a cell away."""
    lattice = site.lattice
    back = site.f.part(lattice.opposite[index])[site.here]
    push = dotted(site, velocity, index) if velocity else 0.0
    return back if is_zero(push) else back + (6 * lattice.weights[index]) * push


@dataclass(frozen=True, eq=False)
class HalfWay(Boundary):
    """Solid cells whose surface is half-way between a solid and a fluid cell.

    Populations that enter the solid bounce back in the same step. Solid cells are at rest.

    Attributes:
        solid: Where it is solid: a bool tensor `[*space]`, or a function from the size.
        velocity: Velocity of the solid along each axis; empty for one at rest.

    Example:
        >>> from hotgrid.grid import lbm
        >>> ball = HalfWay(lbm.ball((16, 16), 4))
        >>> ball.cells((32, 32)).sum()
        tensor(45)

    Raises:
        ArgumentError: The mask does not have the shape of the grid.
    """

    solid: Shape
    velocity: tuple[Number, ...] = ()
    obstacle: ClassVar[bool] = True
    marks: ClassVar[bool] = False
    quiet_elsewhere: ClassVar[bool] = True

    @property
    def leaks(self) -> bool:
        """A solid that moves sweeps fluid away."""
        return bool(self.velocity)

    def check(self, lattice: Lattice, numbers: Mapping[str, float]) -> None:
        """The velocity is one number for each axis, or empty."""
        if self.velocity != ():
            check_vector("velocity", self.velocity, lattice, numbers)

    def cells(self, size: tuple[int, ...]) -> Tensor:
        """The solid cells."""
        return spread(self.solid, size, "solid").bool()

    def inputs(self, lattice: Lattice) -> tuple[Input, ...]:
        """One bit for each direction from which a wall sends populations back."""
        dtype = torch.uint8 if lattice.count <= 9 else torch.int32
        return (Input("links", dtype=dtype, quiet_at_zero=True),)

    def static(self, lattice: Lattice, size: tuple[int, ...]) -> dict[str, Tensor]:
        """Bit `i - 1` of a cell: population i comes from a solid cell; all in the solid."""
        solid = self.cells(size)
        links = torch.zeros(size, dtype=torch.int32)
        for i, c in enumerate(lattice.velocities[1:]):
            links |= (solid | torch.roll(solid, c, tuple(range(lattice.rank)))).int() << i
        return {"links": links}

    def select(self, site: Site, pulled: Sequence[Tensor]) -> list[Tensor]:
        """If the upstream cell is solid, what left this cell bounces back."""
        found = list(pulled)
        links = site.own("links").to(torch.int32)
        for i in range(1, site.lattice.count):
            cut = has_bits(links, 1 << (i - 1))
            found[i] = torch.where(cut, bounced(site, i, self.velocity), pulled[i])
        return found

    def carry(self, site: Site, pulled: Sequence[Tensor]) -> list[Tensor]:
        """No heat passes, and a solid that moves adds none."""
        return replace(self, velocity=()).select(site, pulled)

    def settle(
        self, site: Site, pulled: Sequence[Tensor], collided: Sequence[Tensor]
    ) -> list[Tensor]:
        """Rest in the solid, and in single cells that it encloses."""
        every = (1 << (site.lattice.count - 1)) - 1
        fluid = has_bits(site.own("links").to(torch.int32) ^ every, every)
        return [torch.where(fluid, plane, 0.0) for plane in collided]

    def force(
        self, lattice: Lattice, f: Tensor, links: Any, numbers: Mapping[str, float]
    ) -> list[Tensor]:
        """The momentum exchanged, with what a moving solid adds."""
        velocity = [numbers[u] if isinstance(u, str) else u for u in self.velocity]
        return exchanged_momentum(lattice, f, links, velocity)


@dataclass(frozen=True, eq=False)
class FullWay(Boundary):
    """Solid cells that bounce everything back one step later, instead of a collision.

    Its surface, too, is half-way between cells; it is a step late when flows change.

    Attributes:
        solid: Where it is solid: a bool tensor `[*space]`, or a function from the size.

    Example:
        >>> FullWay(torch.ones(4, 4, dtype=torch.bool)).cells((4, 4)).all()
        tensor(True)

    Raises:
        ArgumentError: The mask does not have the shape of the grid.
    """

    solid: Shape
    obstacle: ClassVar[bool] = True
    quiet_elsewhere: ClassVar[bool] = True

    def cells(self, size: tuple[int, ...]) -> Tensor:
        """The solid cells."""
        return spread(self.solid, size, "solid").bool()

    def select(self, site: Site, pulled: Sequence[Tensor]) -> list[Tensor]:
        """Nothing is replaced: populations stream into the solid and out of it."""
        return list(pulled)

    def settle(
        self, site: Site, pulled: Sequence[Tensor], collided: Sequence[Tensor]
    ) -> list[Tensor]:
        """Populations in the solid are reversed."""
        solid = site.marked()
        back = [pulled[o] for o in site.lattice.opposite]
        return [torch.where(solid, b, plane) for b, plane in zip(back, collided, strict=True)]

    def force(
        self, lattice: Lattice, f: Tensor, links: Any, numbers: Mapping[str, float]
    ) -> list[Tensor]:
        """The momentum exchanged, of which the solid holds what it has yet to send back."""
        return exchanged_momentum(lattice, f, links, late=True)


@dataclass(frozen=True)
class Wall(Face):
    """A wall along a whole face of the grid, half a cell outside of it.

    Attributes:
        face: Which face.
        velocity: Velocity of the wall along each axis; empty for one at rest.
        temperature: The temperature of the wall, in flows that carry one; None lets no
            heat through.

    Example:
        >>> Wall("y+", velocity=(0, 0.1)).cells((4, 4)).sum(1)
        tensor([0, 0, 0, 4])

    Raises:
        ArgumentError: There is no such face, or the wall does not slide along itself.
    """

    face: str
    velocity: tuple[Number, ...] = ()
    temperature: Number | None = None
    quiet_elsewhere: ClassVar[bool] = True

    def check(self, lattice: Lattice, numbers: Mapping[str, float]) -> None:
        """The velocity is one number for each axis, or empty; a temperature is a number."""
        if self.velocity != ():
            check_vector("velocity", self.velocity, lattice, numbers)
        if self.temperature is not None:
            check_number("temperature", self.temperature, numbers)

    def cells(self, size: tuple[int, ...]) -> Tensor:
        """The outermost layer of cells at the face."""
        if self.velocity and not is_zero(self.velocity[self.axis(len(size))]):
            raise ArgumentError(
                f"the wall at {self.face!r} can only slide along itself, but its `velocity` "
                f"{self.velocity} has a component along {self.face[0]}"
            )
        return super().cells(size)

    def select(self, site: Site, pulled: Sequence[Tensor]) -> list[Tensor]:
        """Populations that left the cell through the face bounce back."""
        entering = self.entering(site.lattice)
        return self.replaced(
            site, pulled, {i: bounced(site, i, self.velocity) for i in entering}
        )

    def carry(self, site: Site, pulled: Sequence[Tensor]) -> list[Tensor]:
        """They come back with reversed sign, about the temperature of the wall."""
        if self.temperature is None:
            return self.select(site, pulled)
        lattice, twice = site.lattice, 2 * site.value(self.temperature)
        new = {
            i: lattice.weights[i] * twice - bounced(site, i, ()) for i in self.entering(lattice)
        }
        return self.replaced(site, pulled, new)


@dataclass(frozen=True)
class FreeSlip(Face):
    """A mirror along a whole face, half a cell outside of it: a wall without friction.

    Attributes:
        face: Which face.

    Example:
        >>> FreeSlip("y-").cells((4, 4)).sum(1)
        tensor([4, 0, 0, 0])

    Raises:
        ArgumentError: There is no such face.
    """

    face: str
    quiet_elsewhere: ClassVar[bool] = True
    mirrors: ClassVar[bool] = True

    def select(self, site: Site, pulled: Sequence[Tensor]) -> list[Tensor]:
        """Populations that left a neighbour through the face come back mirrored."""
        lattice = site.lattice
        axis = self.axis(lattice.rank)
        new: dict[int, Tensor] = {}
        for i in self.entering(lattice):
            along = tuple(0 if a == axis else -c for a, c in enumerate(lattice.velocities[i]))
            new[i] = site.f.part(lattice.mirrored(i, axis))[along]
        return self.replaced(site, pulled, new)
