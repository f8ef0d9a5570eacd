"""DoubleShear: two thin layers of shear that roll up."""

import math

import torch
from torch import Tensor

from hotgrid.grid.lbm._collision import Collision
from hotgrid.grid.model import Parameter, places

from ._reynolds import ReynoldsFlow


class DoubleShear(ReynoldsFlow):
    """Two thin layers of shear that roll up into eddies (Minion and Brown), in 2-D.

    A hard test: where the layers are thinner than the grid can hold, a scheme without
    enough damping makes eddies that are not there, or breaks.

    Arguments:
        collision: How populations relax, or its name.
        reynolds: Velocity times width of the grid over viscosity.
        velocity: Velocity of the streams in cells per step.
        steepness: Height of the grid over thickness of a layer.
        ripple: Velocity across over velocity along, at the start.

    Example:
        >>> from hotgrid.grid import Simulation, lbm
        >>> sim = Simulation(lbm.DoubleShear(), size=(64, 64), compiled=False)
        >>> sim.run(10).steps
        10

    Raises:
        ArgumentError: A parameter is out of bounds.
    """

    windowed = True
    reynolds = Parameter(10_000.0, "velocity times width over viscosity", above=0)
    velocity = Parameter(0.04, "velocity of the streams in cells per step", above=0, high=0.3)
    steepness = Parameter(80.0, "height over thickness of a layer", above=0)
    ripple = Parameter(0.05, "velocity across over velocity along", low=0, high=1)
    picture = "vorticity"

    def __init__(self, collision: Collision | str = "trt", **parameters: float) -> None:
        super().__init__(collision=collision, parameters=parameters)

    def length(self, size: tuple[int, ...]) -> float:
        """The width of the grid in cells."""
        return size[-1]

    def begin(
        self, size: tuple[int, ...], generator: torch.Generator
    ) -> tuple[Tensor, list[Tensor]]:
        """Two streams and a ripple across them."""
        axes = [(x + 0.5) / n for x, n in zip(places(size, torch.float64), size, strict=True)]
        y, x = torch.meshgrid(*axes, indexing="ij")
        from_layer = torch.where(y <= 0.5, y - 0.25, 0.75 - y)
        along = self.velocity * torch.tanh(self.steepness * from_layer)
        across = self.ripple * self.velocity * torch.sin(2 * math.pi * (x + 0.25))
        return torch.ones_like(along), [across, along]
