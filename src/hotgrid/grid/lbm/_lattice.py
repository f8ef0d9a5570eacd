"""Lattices: the velocities with which populations travel, and their weights, as data."""

from dataclasses import dataclass
from itertools import product

from hotgrid.errors import ArgumentError, near


@dataclass(frozen=True)
class Lattice:
    """A set of velocities with isotropic moments and a speed of sound of 1/sqrt(3).

    Components are in the order of the axes of space: `(cy, cx)` in 2-D,
    `(cz, cy, cx)` in 3-D, each -1, 0 or 1. Velocity 0 is rest; the others come in
    pairs of opposites: 1 and 2, 3 and 4, and so on.

    Attributes:
        name: For example `D2Q9`: dimensions and velocities.
        velocities: One tuple of whole numbers for each population.
        weights: One number for each population; they add up to one.
        opposite: For each population the one with the reversed velocity.

    Example:
        >>> D2Q9.velocities[1], D2Q9.velocities[D2Q9.opposite[1]]
        ((0, 1), (0, -1))
    """

    name: str
    velocities: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...]
    opposite: tuple[int, ...]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def of_shells(cls, name: str, rank: int, weights: tuple[float, ...]) -> "Lattice":
        """The lattice whose velocities of squared length n have the weight `weights[n]`.

        A weight of zero leaves a shell out.

        Example:
            >>> Lattice.of_shells("D3Q15", 3, (2 / 9, 1 / 9, 0, 1 / 72)).count
            15
        """
        kept: list[tuple[int, ...]] = []
        for squared, weight in enumerate(weights):
            half = [
                v
                for v in product((0, 1, -1), repeat=rank)
                if weight and sum(c * c for c in v) == squared and v >= tuple(-c for c in v)
            ]
            for v in half:
                kept += [v] if squared == 0 else [v, tuple(-c for c in v)]
        return cls(
            name=name,
            velocities=tuple(kept),
            weights=tuple(weights[sum(c * c for c in v)] for v in kept),
            opposite=tuple(kept.index(tuple(-c for c in v)) for v in kept),
        )

    @property
    def rank(self) -> int:
        """The number of space dims."""
        return len(self.velocities[0])

    @property
    def count(self) -> int:
        """The number of populations."""
        return len(self.velocities)

    @property
    def spread(self) -> float:
        """The mean of squared velocities along an axis: 1/3, or less to carry a scalar."""
        return sum(w * c[0] ** 2 for w, c in zip(self.weights, self.velocities, strict=True))

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Every population but rest, together with its opposite."""
        return tuple((i, o) for i, o in enumerate(self.opposite) if i < o)

    def mirrored(self, index: int, axis: int) -> int:
        """The population whose velocity is the same but for the sign along one axis."""
        v = list(self.velocities[index])
        v[axis] = -v[axis]
        return self.velocities.index(tuple(v))


D2Q9 = Lattice.of_shells("D2Q9", 2, (4 / 9, 1 / 9, 1 / 36))
"""Nine velocities in the plane."""
D3Q19 = Lattice.of_shells("D3Q19", 3, (1 / 3, 1 / 18, 1 / 36))
"""Nineteen velocities in space: rest, faces and edges of a cube."""
D3Q27 = Lattice.of_shells("D3Q27", 3, (8 / 27, 2 / 27, 1 / 54, 1 / 216))
"""Twenty-seven velocities in space: rest, faces, edges and corners of a cube."""
D2Q5 = Lattice.of_shells("D2Q5", 2, (1 / 3, 1 / 6))
"""Five velocities in the plane, the first of `D2Q9`: enough to carry a temperature."""
D3Q7 = Lattice.of_shells("D3Q7", 3, (1 / 4, 1 / 8))
"""Seven velocities in space, the first of `D3Q19`, with a spread of 1/4."""

CARRIERS = {lattice.rank: lattice for lattice in (D2Q5, D3Q7)}
"""The lattices of a temperature by the number of space dims."""
LATTICES = {lattice.name: lattice for lattice in (D2Q9, D3Q19, D3Q27)}
"""The lattices by name."""


def find_lattice(lattice: Lattice | str) -> Lattice:
    """A lattice, or the one with that name.

    Example:
        >>> find_lattice("d2q9").count
        9

    Raises:
        ArgumentError: There is none of this name.
    """
    if isinstance(lattice, Lattice):
        return lattice
    if not isinstance(lattice, str) or lattice.upper() not in LATTICES:
        raise ArgumentError(
            f"`lattice` {lattice!r} is unknown; use one of "
            f"{', '.join(LATTICES)}{near(lattice, LATTICES)}"
        )
    return LATTICES[lattice.upper()]
