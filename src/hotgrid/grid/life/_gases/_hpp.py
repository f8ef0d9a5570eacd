"""HPP: the first lattice gas, four directions on the square grid."""

from collections.abc import Mapping
from functools import reduce
from operator import or_

from torch import Tensor

from hotgrid.grid.model import Neighbours, Planes

from ._lattice_gas import LatticeGas, Start


class HPP(LatticeGas):
    """The lattice gas of Hardy, Pomeau and de Pazzis.

    Particles fly right, up, left and down. Two that meet head on, alone in a cell, leave at
    right angles.

    Arguments:
        density: The share of directions that are taken at the start.
        start: `"pulse"` has a dense disc in the middle, `"uniform"` has none.

    Example:
        >>> HPP().conserved
        ('mass', 'momentum_x', 'momentum_y')

    Raises:
        ArgumentError: An argument is wrong; the message names it.
    """

    velocities = ((1, 0), (0, -1), (-1, 0), (0, 1))

    def __init__(self, density: float = 0.2, *, start: Start = "pulse") -> None:
        super().__init__(density, start)

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """Particles arrive, then collide."""
        particles = state["particles"]
        arrived = reduce(
            or_,
            [particles[-y, -x] & (1 << bit) for bit, (x, y) in enumerate(self.velocities)],
        )
        right, up, left, down = (arrived >> bit & 1 for bit in range(4))
        # Where 0101 or 1010 arrived, all four change.
        pairs = ((right & left) ^ (up & down)) & ~((right ^ left) | (up ^ down))
        return {"particles": arrived ^ ((0 - pairs) & 0b1111)}
