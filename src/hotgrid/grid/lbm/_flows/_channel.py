"""Poiseuille and Couette: flow between two plates, with exact solutions."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from hotgrid.grid.lbm._boundary import Wall
from hotgrid.grid.lbm._collision import Collision

from ._reynolds import ReynoldsFlow


class Poiseuille(ReynoldsFlow):
    """A force drives the fluid between plates at `y-` and `y+`; periodic along x.

    The steady flow is a parabola, exact to round-off with `TRT(magic=3 / 16)`.

    Arguments:
        collision: How populations relax, or its name.
        reynolds: Peak velocity times distance of the plates over viscosity.
        velocity: Peak velocity in cells per step.

    Example:
        >>> from hotgrid.grid import Simulation, lbm
        >>> sim = Simulation(lbm.Poiseuille(), size=(16, 4), compiled=False)
        >>> sim.run(10).steps
        10

    Raises:
        ArgumentError: A parameter is out of bounds.
    """

    def __init__(self, collision: Collision | str = "trt", **parameters: float) -> None:
        super().__init__(
            collision=collision, boundaries=(Wall("y-"), Wall("y+")), parameters=parameters
        )
        self.size = (64, 64)

    def length(self, size: tuple[int, ...]) -> float:
        """The distance of the plates in cells."""
        return size[0]

    def force_in(self, numbers: Mapping[str, Any]) -> Sequence[Any]:
        """The force that drives the parabola to its peak velocity."""
        height, peak = numbers["length"], numbers["velocity"]
        return (0.0, 8 * self.viscosity_in(numbers) * peak / (height * height))

    def exact(self, size: tuple[int, ...]) -> Tensor:
        """The steady velocity along x, float64 `[y, x]`."""
        y = torch.arange(size[0], dtype=torch.float64) + 0.5
        profile = 4 * self.velocity * y * (size[0] - y) / size[0] ** 2
        return profile.unsqueeze(1).expand(size)


class Couette(ReynoldsFlow):
    """The plate at `y+` drags the fluid along x, the one at `y-` is at rest; periodic in x.

    The steady flow grows evenly from one plate to the other.

    Arguments:
        collision: How populations relax, or its name.
        reynolds: Velocity times distance of the plates over viscosity.
        velocity: Velocity of the plate in cells per step.

    Example:
        >>> from hotgrid.grid import Simulation, lbm
        >>> sim = Simulation(lbm.Couette(), size=(16, 4), compiled=False)
        >>> sim.run(10).steps
        10

    Raises:
        ArgumentError: A parameter is out of bounds.
    """

    def __init__(self, collision: Collision | str = "trt", **parameters: float) -> None:
        super().__init__(
            collision=collision,
            boundaries=(Wall("y-"), Wall("y+", velocity=(0, "velocity"))),
            parameters=parameters,
        )
        self.size = (64, 64)

    def length(self, size: tuple[int, ...]) -> float:
        """The distance of the plates in cells."""
        return size[0]

    def exact(self, size: tuple[int, ...]) -> Tensor:
        """The steady velocity along x, float64 `[y, x]`."""
        y = torch.arange(size[0], dtype=torch.float64) + 0.5
        return (self.velocity * y / size[0]).unsqueeze(1).expand(size)
