"""Collisions in the frame that moves with the fluid: central moments and cumulants."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from hotgrid.grid.lbm._lattice import Lattice
from hotgrid.grid.lbm._moments import combined
from hotgrid.grid.model import Parameter

from ._collision import Collision, Fluid, stress
from ._product import expect_product, from_central, product_equilibrium

Powers = tuple[int, ...]


@dataclass(frozen=True)
class CentralMoments(Collision):
    """Moments about the velocity of the fluid; all but shear and trace go to equilibrium.

    The viscosity does not depend on how fast the fluid moves past the grid, as it does in
    `BGK`, and short waves are damped (Geier 2006). For `D2Q9` and `D3Q27`.

    Attributes:
        bulk: The rate of the trace of the stress, from 0 to 2; 1 damps sound most.

    Example:
        >>> CentralMoments()
        CentralMoments(bulk=1.0)
    """

    bulk: float = 1.0

    def __post_init__(self) -> None:
        Parameter(1.0, above=0, high=2).checked("bulk", self.bulk)

    def check(self, lattice: Lattice) -> None:
        """Axes are taken one after the other."""
        expect_product(lattice, type(self).__name__)

    def equilibrium(
        self, lattice: Lattice, excess: Tensor, momentum: Sequence[Tensor]
    ) -> list[Tensor]:
        """The equilibrium of all orders that the lattice can represent."""
        return product_equilibrium(lattice, excess, momentum)

    def relaxed(
        self, lattice: Lattice, h: Sequence[Tensor], density: Tensor, omega: Tensor
    ) -> list[Tensor]:
        """The deviation in a fluid at rest."""
        still = (0 * density,) * lattice.rank
        return self.relaxed_moving(lattice, h, Fluid(density, still, ()), omega)

    def relaxed_moving(
        self, lattice: Lattice, h: Sequence[Tensor], fluid: Fluid, omega: Tensor
    ) -> list[Tensor]:
        """The deviation rebuilt from shear and trace, each at its rate."""
        # Without mass and momentum, second moments are the same about any velocity.
        pi, rank = stress(lattice, h), lattice.rank
        trace = combined([1] * rank, [pi[a, a] for a in range(rank)]) / rank
        left: dict[tuple[int, int], Tensor] = {}
        for (a, b), plane in pi.items():
            left[a, b] = (1 - omega) * (plane - trace if a == b else plane)
            if a == b and self.bulk != 1:
                left[a, b] = left[a, b] + (1 - self.bulk) * trace
        found = {_powers(rank, a, b): plane for (a, b), plane in left.items()}
        found |= self.higher(rank, left, fluid.density)
        return from_central(lattice, found, fluid.velocity)

    def higher(
        self, rank: int, left: Mapping[tuple[int, int], Tensor], density: Tensor
    ) -> dict[Powers, Tensor]:
        """Moments of higher order above those of equilibrium; none are left.

        Arguments:
            rank: The number of space dims.
            left: The stress after the collision by pair of axes, upper half only.
            density: The density, `[*space]`.
        """
        return {}


@dataclass(frozen=True)
class Cumulant(CentralMoments):
    """Cumulants: as `CentralMoments`, with moments of order four and six that follow shear.

    All cumulants above the second order go to zero, so a collision leaves a Gaussian with
    the stress it has: the fourth moment of x and y is `(xx yy + 2 xy xy) / density`, and not
    that of equilibrium (Geier 2015, all of its higher rates 1). For `D2Q9` and `D3Q27`.

    Attributes:
        bulk: The rate of the trace of the stress, from 0 to 2; 1 damps sound most.

    Example:
        >>> Cumulant()
        Cumulant(bulk=1.0)
    """

    def higher(
        self, rank: int, left: Mapping[tuple[int, int], Tensor], density: Tensor
    ) -> dict[Powers, Tensor]:
        """The difference between a Gaussian with this stress and one without."""
        volume = density.reciprocal()
        found: dict[Powers, Tensor] = {}
        axes = range(rank)
        for a, b in [pair for pair in left if pair[0] != pair[1]]:
            powers = tuple(2 * int(x in (a, b)) for x in axes)
            found[powers] = _fourth(left, volume, a, b)
        if rank == 3:
            for a in axes:
                b, c = (x for x in axes if x != a)
                powers = tuple(1 + int(x == a) for x in axes)
                mixed = left[a, a] * left[b, c] + 2 * (_of(left, a, b) * _of(left, a, c))
                found[powers] = left[b, c] / 3 + mixed * volume
            found[2, 2, 2] = _sixth(left, volume)
        return found


def _powers(rank: int, a: int, b: int) -> Powers:
    return tuple(int(x == a) + int(x == b) for x in range(rank))


def _of(left: Mapping[tuple[int, int], Tensor], a: int, b: int) -> Tensor:
    return left[min(a, b), max(a, b)]


def _fourth(left: Mapping[tuple[int, int], Tensor], volume: Tensor, a: int, b: int) -> Tensor:
    """`(aa bb + 2 ab ab) / density` above `density / 9`, where aa is above `density / 3`."""
    product = left[a, a] * left[b, b] + 2 * (left[a, b] * left[a, b])
    return (left[a, a] + left[b, b]) / 3 + product * volume


def _sixth(left: Mapping[tuple[int, int], Tensor], volume: Tensor) -> Tensor:
    """The moment of all squares of a Gaussian in space, above that of equilibrium."""
    x, y, z = (left[a, a] for a in range(3))
    yz, xz, xy = left[1, 2], left[0, 2], left[0, 1]
    squares = yz * yz + xz * xz + xy * xy
    first = (x + y + z) / 9
    second = ((x * y + y * z + x * z) / 3 + (2 / 3) * squares) * volume
    third = x * (y * z) + 2 * (x * (yz * yz) + y * (xz * xz) + z * (xy * xy))
    return first + second + (third + 8 * (xy * (yz * xz))) * (volume * volume)
