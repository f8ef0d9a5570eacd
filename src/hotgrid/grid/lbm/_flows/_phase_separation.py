"""PhaseSeparation: a mixture of two liquids that separates."""

import torch
from torch import Tensor

from hotgrid.grid.lbm._mixture import TwoComponents
from hotgrid.grid.model import Parameter, uniform


class PhaseSeparation(TwoComponents):
    """A mixture of two liquids that separates, as oil and water do, in a periodic grid.

    It starts evenly mixed, with small noise. Where the repulsion is above 2 it falls into
    drops or bands, which merge.

    Arguments:
        lattice: The velocities, or their name; `D3Q19` or `D3Q27` in 3-D.
        filling: Share of the first component.
        repulsion: How strongly the components repel each other.
        viscosity: Kinematic viscosity of both.

    Example:
        >>> from hotgrid.grid import Simulation, lbm
        >>> sim = Simulation(lbm.PhaseSeparation(), size=(32, 32), compiled=False)
        >>> sim.run(200).steps
        200
        >>> sim.observe()["contrast"] > 0.5
        True

    Raises:
        ArgumentError: A parameter is out of bounds.
    """

    windowed = True
    filling = Parameter(0.5, "share of the first component", above=0, high=0.98)

    def shares(self, size: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """The filling, with small noise."""
        noise = 2 * uniform(size, generator, torch.float64) - 1
        return self.filling + 0.02 * noise * min(self.filling, 1 - self.filling)
