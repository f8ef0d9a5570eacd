"""TaylorGreen: a lattice of eddies that decays, in 2-D by an exact law."""

import math

import torch
from torch import Tensor

from hotgrid.grid.lbm._collision import Collision
from hotgrid.grid.lbm._lattice import D2Q9, Lattice

from ._reynolds import ReynoldsFlow


class TaylorGreen(ReynoldsFlow):
    """A lattice of eddies with one wave along each axis, all ends joined.

    In 2-D it keeps its form and decays by an exact law, `exact`. In 3-D it breaks up
    into ever smaller eddies.

    Arguments:
        lattice: The velocities, or their name; `D3Q19` or `D3Q27` in 3-D.
        collision: How populations relax, or its name.
        reynolds: Velocity times wave length over 2 pi over viscosity.
        velocity: Largest velocity at the start in cells per step.

    Example:
        >>> from hotgrid.grid import Simulation, lbm
        >>> sim = Simulation(lbm.TaylorGreen(reynolds=10), size=(32, 32), compiled=False)
        >>> sim.run(10).steps
        10

    Raises:
        ArgumentError: A parameter is out of bounds.
    """

    picture = "vorticity"

    def __init__(
        self,
        lattice: Lattice | str = D2Q9,
        collision: Collision | str = "trt",
        **parameters: float,
    ) -> None:
        super().__init__(lattice=lattice, collision=collision, parameters=parameters)

    def length(self, size: tuple[int, ...]) -> float:
        """The wave length along x over 2 pi, in cells."""
        return size[-1] / (2 * math.pi)

    def decay_rate(self, size: tuple[int, ...]) -> float:
        """By what share the velocity falls in a step, in 2-D."""
        viscosity = self.viscosity_in(self.numbers(size))
        return viscosity * sum((2 * math.pi / n) ** 2 for n in size)

    def exact(self, size: tuple[int, int], steps: int = 0) -> tuple[Tensor, list[Tensor]]:
        """Density and velocity along y and x after some steps, in 2-D, float64 `[y, x]`."""
        ky, kx = (2 * math.pi / n for n in size)
        y, x = _phases(size)
        fall = math.exp(-self.decay_rate(size) * steps)
        speed = self.velocity * fall
        u = -speed * torch.cos(x) * torch.sin(y)
        v = speed * (kx / ky) * torch.sin(x) * torch.cos(y)
        waves = torch.cos(2 * x) + (kx / ky) ** 2 * torch.cos(2 * y)
        return 1 - 0.75 * speed**2 * waves, [v, u]

    def begin(
        self, size: tuple[int, ...], generator: torch.Generator
    ) -> tuple[Tensor, list[Tensor]]:
        """The eddies at their strongest."""
        if len(size) == 2:
            return self.exact((size[0], size[1]))
        z, y, x = _phases(size)
        u = self.velocity * torch.sin(x) * torch.cos(y) * torch.cos(z)
        v = -self.velocity * torch.cos(x) * torch.sin(y) * torch.cos(z)
        waves = (torch.cos(2 * x) + torch.cos(2 * y)) * (torch.cos(2 * z) + 2)
        return 1 + (3 / 16) * self.velocity**2 * waves, [torch.zeros_like(u), v, u]


def _phases(size: tuple[int, ...]) -> list[Tensor]:
    """From 0 to 2 pi along each axis, float64 `[*space]` each."""
    axes = [2 * math.pi * torch.arange(n, dtype=torch.float64) / n for n in size]
    return list(torch.meshgrid(*axes, indexing="ij"))
