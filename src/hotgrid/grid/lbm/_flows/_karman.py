"""Karman: the vortex street behind a cylinder."""

import math

import torch
from torch import Tensor

from hotgrid.grid.lbm._boundary import ExtrapolationOutlet, FreeSlip, HalfWay, ZouHeVelocity
from hotgrid.grid.lbm._collision import Collision
from hotgrid.grid.model import Parameter, places, window_shape

from ._cylinder import CylinderFlow


class Karman(CylinderFlow):
    """The vortex street behind a cylinder in a stream, in 2-D.

    The stream comes in at `x-` with one velocity and leaves at `x+`; it slips along
    `y-` and `y+`. The cylinder is in the middle of the height, a fifth of the width
    downstream. It starts with a faint wave across, so that the street need not wait for
    round-off to grow. Make it at least three times as wide as high: in a shorter box sound
    is thrown back between inlet and outlet and drowns the lift.

    Arguments:
        collision: How populations relax, or its name.
        reynolds: Velocity times diameter over viscosity.
        velocity: Velocity of the stream in cells per step.
        diameter: Diameter of the cylinder over the height of the grid.

    Example:
        >>> from hotgrid.grid import Simulation, lbm
        >>> sim = Simulation(lbm.Karman(reynolds=100), size=(64, 128), compiled=False)
        >>> sim.run(2).steps
        2

    Raises:
        ArgumentError: A parameter is out of bounds, or the grid too small for the cylinder.
    """

    windowed = True
    reynolds = Parameter(150.0, "velocity times diameter over viscosity", above=0)
    diameter = Parameter(0.1, "diameter over the height of the grid", above=0, high=0.5)

    def __init__(self, collision: Collision | str = "trt", **parameters: float) -> None:
        super().__init__(
            collision=collision,
            boundaries=(
                FreeSlip("y-"),
                FreeSlip("y+"),
                HalfWay(self.cylinder),
                ZouHeVelocity("x-", velocity=(0, "velocity")),
                ExtrapolationOutlet("x+"),
            ),
            parameters=parameters,
        )
        self.size = (200, 800)

    def length(self, size: tuple[int, ...]) -> float:
        """The diameter in cells."""
        return self.diameter * size[0]

    def centre(self, size: tuple[int, ...]) -> tuple[float, float]:
        """The middle of the cylinder in cells, `(y, x)`."""
        return (size[0] - 1) / 2, (size[1] - 1) / 5

    def begin(
        self, size: tuple[int, ...], generator: torch.Generator
    ) -> tuple[Tensor, list[Tensor]]:
        """The stream everywhere, with a faint wave across it."""
        x = places(size, torch.float64)[1] / size[1]
        rest = torch.zeros(window_shape(size), dtype=torch.float64)
        wave = 0.05 * self.velocity * torch.sin(2 * math.pi * x)
        return rest + 1, [rest + wave, rest + self.velocity]
