"""KBC: the rate of higher moments from the entropy, cell by cell."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from hotgrid.grid.lbm._lattice import Lattice
from hotgrid.grid.lbm._moments import combined

from ._collision import Collision, Fluid, stress
from ._product import is_product, product_equilibrium

# Keeps a share finite where nothing deviates.
_TINY = 1e-30


@dataclass(frozen=True)
class KBC(Collision):
    """Karlin, Boesch and Chikatamarla: higher moments relax so that entropy is largest.

    Shear relaxes at the rate of the viscosity. The rate of all else follows, cell by cell,
    from the entropy after the collision: a flow that the grid does not resolve stays
    stable, and where it is resolved little changes. Where nothing deviates from equilibrium
    that rate has no derivative, so gradients are of use in flows that move everywhere.

    Example:
        >>> KBC()
        KBC()
    """

    def equilibrium(
        self, lattice: Lattice, excess: Tensor, momentum: Sequence[Tensor]
    ) -> list[Tensor]:
        """The equilibrium of all orders that the lattice can represent; second on D3Q19."""
        if is_product(lattice):
            return product_equilibrium(lattice, excess, momentum)
        return super().equilibrium(lattice, excess, momentum)

    def relaxed(
        self, lattice: Lattice, h: Sequence[Tensor], density: Tensor, omega: Tensor
    ) -> list[Tensor]:
        """The deviation in a fluid at rest."""
        rest = [w * (density - 1) for w in lattice.weights]
        return self.relaxed_moving(lattice, h, Fluid(density, (), rest), omega)

    def relaxed_moving(
        self, lattice: Lattice, h: Sequence[Tensor], fluid: Fluid, omega: Tensor
    ) -> list[Tensor]:
        """Shear at its rate, the rest at that of the largest entropy."""
        shear = _shear(lattice, h)
        rest = [x if s is None else x - s for x, s in zip(h, shear, strict=True)]
        scaled = [
            r / (eq + w)
            for r, eq, w in zip(rest, fluid.equilibrium, lattice.weights, strict=True)
        ]
        length = combined(
            [1] * lattice.count, [r * x for r, x in zip(rest, scaled, strict=True)]
        )
        both = [s * x for s, x in zip(shear, scaled, strict=True) if s is not None]
        share = combined([1] * len(both), both) / (length + _TINY)
        # omega / 2 times gamma, with gamma = 2 / omega - (2 - 2 / omega) share.
        rate = 1 - (omega - 1) * share
        return [
            x - rate * r if s is None else x - (omega * s + rate * r)
            for x, s, r in zip(h, shear, rest, strict=True)
        ]


def _shear(lattice: Lattice, h: Sequence[Tensor]) -> list[Tensor | None]:
    """The part of a deviation that carries its shear; None where there is none."""
    pi, rank = stress(lattice, h), lattice.rank
    mean = combined([1] * rank, [pi[a, a] for a in range(rank)]) / rank
    found: list[Tensor | None] = []
    for c in lattice.velocities:
        along = [a for a in range(rank) if c[a]]
        if len(along) == 1:
            [a] = along
            found.append(0.5 * (pi[a, a] - mean))
        elif len(along) == 2:
            a, b = along
            found.append((0.25 * c[a] * c[b]) * pi[a, b])
        else:
            found.append(None)
    return found
