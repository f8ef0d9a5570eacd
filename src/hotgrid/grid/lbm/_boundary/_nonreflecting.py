"""NonReflectingOutlet: a face through which flow and sound leave."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from hotgrid.grid.lbm._lattice import Lattice
from hotgrid.grid.lbm._moments import equilibrium, is_zero, moments

from ._boundary import Face, Number, Site, check_number

_SOUND = 3**-0.5


@dataclass(frozen=True)
class NonReflectingOutlet(Face):
    """A face through which the flow leaves, and sound with it (Thompson 1987).

    Density and velocity at the face follow the waves that go out; none comes in. Put it
    before walls that meet it, so that they win in the corner.

    Attributes:
        face: Which face.
        hold: What part of a density above one, or below, is removed in a step; 0 is none,
            and then the density may drift. Near 0.3 over the cells along the flow little
            sound is reflected.

    Example:
        >>> NonReflectingOutlet("x+").cells((2, 3))[0]
        tensor([False, False,  True])

    Raises:
        ArgumentError: There is no such face.
    """

    face: str
    hold: Number = 0.0
    quiet_elsewhere: ClassVar[bool] = True

    @property
    def leaks(self) -> bool:
        """Mass goes in and out."""
        return True

    def check(self, lattice: Lattice, numbers: Mapping[str, float]) -> None:
        """Check that the prescribed value is a number."""
        check_number("hold", self.hold, numbers)

    def select(self, site: Site, pulled: Sequence[Tensor]) -> list[Tensor]:
        """The entering populations, from the density and velocity that waves leave behind."""
        lattice = site.lattice
        excess, momentum = self._later(site)
        base = equilibrium(lattice, excess, momentum)
        new = {
            i: pulled[lattice.opposite[i]] + (base[i] - base[lattice.opposite[i]])
            for i in self.entering(lattice)
        }
        return self.replaced(site, pulled, new)

    def carry(self, site: Site, pulled: Sequence[Tensor]) -> list[Tensor]:
        """Heat leaves with the flow."""
        return self.replaced(site, pulled, self.extrapolated(site))

    def _later(self, site: Site) -> tuple[Tensor, list[Tensor]]:
        """Density minus one and momentum along each axis at the face, one step later."""
        lattice, axis = site.lattice, self.axis(site.lattice.rank)
        inside = tuple(self.inward if a == axis else 0 for a in range(lattice.rank))
        (excess, momentum), (beside, flow) = (
            moments(lattice, [site.f.part(i)[at] for i in range(lattice.count)])
            for at in (site.here, inside)
        )
        density = 1 + excess
        velocity: list[Any] = [m / density for m in momentum]
        # Derivatives along the way out.
        slopes = [u - m / (1 + beside) for u, m in zip(velocity, flow, strict=True)]
        out, out_slope = -self.inward * velocity[axis], -self.inward * slopes[axis]
        leaving = (out + _SOUND) * ((excess - beside) / 3 + _SOUND * density * out_slope)
        coming: Any = 0.0
        if not is_zero(self.hold):
            coming = (2 / 3) * site.value(self.hold) * excess
        later = excess - 1.5 * (leaving + coming)
        faster = out - (leaving - coming) / (2 * _SOUND * density)
        after = [u - out * slope for u, slope in zip(velocity, slopes, strict=True)]
        after[axis] = -self.inward * faster
        return later, [(1 + later) * u for u in after]
