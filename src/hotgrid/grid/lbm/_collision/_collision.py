"""The base of collisions, which compute the relaxed deviation from equilibrium.

With `h` the deviation from equilibrium (half the force included, so that it carries
neither mass nor momentum), every collision is `equilibrium + relaxed(h)`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from hotgrid.grid.lbm._lattice import Lattice
from hotgrid.grid.lbm._moments import combined, equilibrium, equilibrium_parts, half_source


@dataclass(frozen=True)
class Fluid:
    """The fluid in a cell as a collision sees it.

    Attributes:
        density: The density, `[*space]`.
        momentum: Density times velocity along each axis, `[*space]` each.
        equilibrium: The shifted populations at equilibrium.
    """

    density: Tensor
    momentum: tuple[Tensor, ...]
    equilibrium: Sequence[Tensor]

    @property
    def velocity(self) -> list[Tensor]:
        """The velocity along each axis, `[*space]` each."""
        volume = self.density.reciprocal()
        return [m * volume for m in self.momentum]


class Collision(ABC):
    """A collision: how the deviation from equilibrium relaxes.

    Example:
        >>> class Slow(Collision):
        ...     def relaxed(self, lattice, h, density, omega):
        ...         return [0.9 * plane for plane in h]
    """

    @abstractmethod
    def relaxed(
        self, lattice: Lattice, h: Sequence[Tensor], density: Tensor, omega: Tensor
    ) -> list[Tensor]:
        """The deviation after the collision, one `[*space]` for each population.

        Arguments:
            lattice: The lattice.
            h: The deviation before it, one `[*space]` for each population.
            density: The density, `[*space]`.
            omega: The rate of relaxation, 1 / tau; 0-d or `[*space]`.
        """

    def equilibrium(
        self, lattice: Lattice, excess: Tensor, momentum: Sequence[Tensor]
    ) -> list[Tensor]:
        """The populations that it leaves alone; by default of second order in the velocity.

        Arguments:
            lattice: The lattice.
            excess: Density minus one, `[*space]`.
            momentum: Density times velocity along each axis, `[*space]` each.
        """
        return equilibrium(lattice, excess, momentum)

    def relaxed_moving(
        self, lattice: Lattice, h: Sequence[Tensor], fluid: Fluid, omega: Tensor
    ) -> list[Tensor]:
        """As `relaxed`, where the velocity matters; by default it does not.

        Arguments:
            lattice: The lattice.
            h: The deviation before the collision, one `[*space]` for each population.
            fluid: Density, velocity and equilibrium.
            omega: The rate of relaxation, 1 / tau; 0-d or `[*space]`.
        """
        return self.relaxed(lattice, h, fluid.density, omega)

    def collided(
        self,
        lattice: Lattice,
        g: Sequence[Tensor],
        excess: Tensor,
        momentum: Sequence[Tensor],
        force: Sequence[Any],
        omega: Tensor,
    ) -> list[Tensor]:
        """A whole collision, one `[*space]` for each population.

        Arguments:
            lattice: The lattice.
            g: The populations that come in, shifted by their weights.
            excess: Density minus one, `[*space]`.
            momentum: Momentum along each axis with half the force, `[*space]` each.
            force: Force on a cell along each axis; empty for none.
            omega: The rate of relaxation, 1 / tau; 0-d or `[*space]`.
        """
        base = self.equilibrium(lattice, excess, momentum)
        fluid = Fluid(1 + excess, tuple(momentum), base)
        h = [plane - eq for plane, eq in zip(g, base, strict=True)]
        if force:
            push = half_source(lattice, fluid.velocity, force)
            h = [plane + s for plane, s in zip(h, push, strict=True)]
            base = [plane + s for plane, s in zip(base, push, strict=True)]
        left = self.relaxed_moving(lattice, h, fluid, omega)
        return [b + x for b, x in zip(base, left, strict=True)]

    def check(self, lattice: Lattice) -> None:  # noqa: B027
        """Raise `ArgumentError` where it does not suit a lattice; by default it does."""

    def rates(self, omega: Tensor) -> tuple[Any, Any] | None:
        """The two rates, if even and odd parts of all pairs relax at one rate each.

        A collision that returns them takes fewer operations; None for all others.
        """
        return None

    def stress_time(self, tau: Tensor, strain: Mapping[tuple[int, int], Tensor]) -> Tensor:
        """The relaxation time of the stress where the flow shears; by default `tau`.

        A flow starts with the stress that it gives.

        Arguments:
            tau: The relaxation time of the viscosity, `[*space]`.
            strain: The strain rate, `[*space]` by pair of axes, upper half only.
        """
        return tau


def relaxed_pairs(
    lattice: Lattice,
    g: Sequence[Tensor],
    excess: Tensor,
    momentum: Sequence[Tensor],
    rates: tuple[Any, Any],
) -> list[Tensor]:
    """A whole collision without force, of even and odd parts at a rate each.

    It is `equilibrium + relaxed(h)` with the deviation never written out. Even parts come
    last, since they are ready last.
    """
    even_rate, odd_rate = rates
    rest, parts = equilibrium_parts(lattice, excess, momentum, *rates)
    found = [(1 - even_rate) * g[0] + rest] * lattice.count
    for (i, o), (even, odd) in zip(lattice.pairs, parts, strict=True):
        if even_rate is odd_rate:
            found[i] = ((1 - even_rate) * g[i] + odd) + even
            found[o] = ((1 - even_rate) * g[o] - odd) + even
            continue
        # Not `(1 - rate) * g + rate * equilibrium`: where `1 - rate` is rounded, momentum
        # would grow or fade by that much in every step.
        change = (0.5 * even_rate) * (g[i] + g[o]) - even
        turn = (0.5 * odd_rate) * (g[i] - g[o]) - odd
        found[i], found[o] = g[i] - (change + turn), g[o] - (change - turn)
    return found


def stress(lattice: Lattice, h: Sequence[Tensor]) -> dict[tuple[int, int], Tensor]:
    """The second moments of populations, `[*space]` by pair of axes, upper half only."""
    both = [h[i] + h[o] for i, o in lattice.pairs]
    found: dict[tuple[int, int], Tensor] = {}
    # Not itertools: torch 2.11 cannot trace it.
    axes = range(lattice.rank)
    for a, b in [(i, j) for i in axes for j in axes[i:]]:
        signs = [lattice.velocities[i][a] * lattice.velocities[i][b] for i, _ in lattice.pairs]
        found[a, b] = combined(signs, both)
    return found
