"""Openings of a grid: inlets and outlets on its faces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from hotgrid.grid.lbm._lattice import Lattice
from hotgrid.grid.lbm._moments import combined, is_zero
from hotgrid.grid.model import Input

from ._boundary import Face, Number, Shape, Site, check_number, check_vector, spread


class _ZouHe(Face):
    """The part that Zou and He's inlets share: unknown populations from density and velocity.

    The deviation from equilibrium of what comes in is that of what goes out the other
    way, with momentum along the face put right, for any lattice.
    """

    quiet_elsewhere: ClassVar[bool] = True

    @property
    def leaks(self) -> bool:
        """Mass goes in and out."""
        return True

    def carry(self, site: Site, pulled: Sequence[Tensor]) -> list[Tensor]:
        """The temperature is that given for the face, or passes through."""
        if self.temperature is None:
            return self.replaced(site, pulled, self.extrapolated(site))
        lattice, entering = site.lattice, self.entering(site.lattice)
        there = [int(i not in entering) for i in range(lattice.count)]
        lacking = site.value(self.temperature) - combined(there, pulled)
        weights = {i: lattice.weights[i] for i in entering}
        whole = sum(weights.values())
        return self.replaced(site, pulled, {i: w / whole * lacking for i, w in weights.items()})

    def known(self, site: Site, pulled: Sequence[Tensor]) -> Tensor:
        """Density times (1 - inward velocity), from the populations that streaming provides."""
        axis = self.axis(site.lattice.rank)
        found: Any = 1.0
        for i, c in enumerate(site.lattice.velocities):
            if c[axis] == 0:
                found = found + pulled[i]
            elif c[axis] == -self.inward:
                found = found + 2 * pulled[i]
        return found

    def rebuilt(
        self, site: Site, pulled: Sequence[Tensor], momentum: Sequence[Any]
    ) -> list[Tensor]:
        """The populations with those that enter built from a momentum along each axis."""
        lattice = site.lattice
        axis = self.axis(lattice.rank)
        inward = momentum[axis] * self.inward
        lacking = []
        for a, wanted in enumerate(momentum):
            signs = [0 if c[axis] else c[a] for c in lattice.velocities]
            lacking.append(None if a == axis else 3 * (wanted - combined(signs, pulled)))
        new: dict[int, Tensor] = {}
        for i in self.entering(lattice):
            c = [0 if a == axis else s for a, s in enumerate(lattice.velocities[i])]
            aside = combined(c, lacking)
            push = inward if aside is None else inward + aside
            new[i] = pulled[lattice.opposite[i]] + (6 * lattice.weights[i]) * push
        return self.replaced(site, pulled, new)


@dataclass(frozen=True, eq=False)
class ZouHeVelocity(_ZouHe):
    """A face where the velocity is given and the density follows.

    Attributes:
        face: Which face. Its cells are on the boundary itself.
        velocity: Velocity along each axis, in the order of the axes: `(uy, ux)`.
        profile: What the velocity is multiplied by, `[*space]`, or a function from the
            size; None is one everywhere.
        temperature: The temperature of the cells, in flows that carry one; None lets it
            pass through.

    Example:
        >>> inlet = ZouHeVelocity("x-", velocity=(0, 0.1))
        >>> inlet.cells((4, 6)).sum(0)
        tensor([4, 0, 0, 0, 0, 0])

    Raises:
        ArgumentError: There is no such face, or the profile does not fit the grid.
    """

    face: str
    velocity: tuple[Number, ...]
    profile: Shape | None = None
    temperature: Number | None = None

    def check(self, lattice: Lattice, numbers: Mapping[str, float]) -> None:
        """The velocity is one number for each axis, a temperature a number."""
        check_vector("velocity", self.velocity, lattice, numbers)
        if self.temperature is not None:
            check_number("temperature", self.temperature, numbers)

    def inputs(self, lattice: Lattice) -> tuple[Input, ...]:
        """The profile, where there is one."""
        return () if self.profile is None else (Input("profile"),)

    def static(self, lattice: Lattice, size: tuple[int, ...]) -> dict[str, Tensor]:
        """The profile, where there is one."""
        if self.profile is None:
            return {}
        return {"profile": spread(self.profile, size, "profile")}

    def select(self, site: Site, pulled: Sequence[Tensor]) -> list[Tensor]:
        """The entering populations that give the cell its velocity."""
        velocity: list[Any] = [site.value(u) for u in self.velocity]
        if self.profile is not None:
            profile = site.own("profile")
            velocity = [u if is_zero(u) else u * profile for u in velocity]
        normal = velocity[self.axis(site.lattice.rank)] * self.inward
        density = self.known(site, pulled) / (1 - normal)
        return self.rebuilt(site, pulled, [u if is_zero(u) else density * u for u in velocity])


@dataclass(frozen=True)
class ZouHePressure(_ZouHe):
    """A face where the density, and so the pressure, is given and flow goes straight through.

    Attributes:
        face: Which face. Its cells are on the boundary itself.
        density: The density; the pressure is a third of it.

    Example:
        >>> ZouHePressure("x+").density
        1.0

    Raises:
        ArgumentError: There is no such face.
    """

    face: str
    density: Number = 1.0

    def check(self, lattice: Lattice, numbers: Mapping[str, float]) -> None:
        """The density is a number."""
        check_number("density", self.density, numbers)

    def select(self, site: Site, pulled: Sequence[Tensor]) -> list[Tensor]:
        """The entering populations that give the cell its density."""
        axis = self.axis(site.lattice.rank)
        momentum: list[Any] = [0.0] * site.lattice.rank
        momentum[axis] = self.inward * (site.value(self.density) - self.known(site, pulled))
        return self.rebuilt(site, pulled, momentum)


@dataclass(frozen=True)
class ExtrapolationOutlet(Face):
    """A face through which the flow leaves: the last cells are extrapolated beyond it.

    It lets eddies out, and reflects about a quarter of a sound wave. Nothing keeps the
    density from drifting unless it is held. Put it before walls that meet it, so that they
    win in the corner.

    Attributes:
        face: Which face.
        hold: What part of a density above one, or below, is removed in a step; 0 is
            none. Two over the cells across the grid keeps the density of a channel near
            one, and reflects little more sound.

    Example:
        >>> ExtrapolationOutlet("x+").cells((2, 3))[0]
        tensor([False, False,  True])

    Raises:
        ArgumentError: There is no such face.
    """

    face: str
    hold: Number = 0.0
    quiet_elsewhere: ClassVar[bool] = True

    def check(self, lattice: Lattice, numbers: Mapping[str, float]) -> None:
        """Check that the prescribed value is a number."""
        check_number("hold", self.hold, numbers)

    @property
    def leaks(self) -> bool:
        """Mass goes in and out."""
        return True

    def select(self, site: Site, pulled: Sequence[Tensor]) -> list[Tensor]:
        """The entering populations come from the last layer in place of one beyond it."""
        new = self.extrapolated(site)
        if not is_zero(self.hold):
            planes = [site.f.part(i)[site.here] for i in range(site.lattice.count)]
            excess = combined([1] * site.lattice.count, planes) * site.value(self.hold)
            new = {i: plane - site.lattice.weights[i] * excess for i, plane in new.items()}
        return self.replaced(site, pulled, new)

    def carry(self, site: Site, pulled: Sequence[Tensor]) -> list[Tensor]:
        """Heat leaves with the flow."""
        return self.replaced(site, pulled, self.extrapolated(site))
