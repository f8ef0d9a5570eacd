"""TaylorGreen: a lattice of eddies that decays, in 2-D by an exact law."""

import math

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.lbm._collision import Collision
from hotgrid.grid.lbm._lattice import D2Q9, D3Q27, Lattice
from hotgrid.grid.model import Parameter, State, observable, places

from ._reynolds import ReynoldsFlow


class TaylorGreen(ReynoldsFlow):
    """A lattice of eddies with one wave along each axis, in a periodic grid.

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

    windowed = True
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
        """The share by which the velocity falls in a step, in 2-D."""
        viscosity = self.viscosity_in(self.numbers(size))
        return viscosity * sum((2 * math.pi / n) ** 2 for n in size)

    def exact(self, size: tuple[int, ...], steps: int = 0) -> tuple[Tensor, list[Tensor]]:
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
            return self.exact(size)
        z, y, x = _phases(size)
        u = self.velocity * torch.sin(x) * torch.cos(y) * torch.cos(z)
        v = -self.velocity * torch.cos(x) * torch.sin(y) * torch.cos(z)
        waves = (torch.cos(2 * x) + torch.cos(2 * y)) * (torch.cos(2 * z) + 2)
        return 1 + (3 / 16) * self.velocity**2 * waves, [torch.zeros_like(u), v, u]


class TaylorGreen3D(TaylorGreen):
    """Eddies that break up into turbulence: the Taylor-Green vortex in 3-D.

    At a Reynolds number of 1600 dissipation is largest, 0.0127 in its own units, at a time
    of 9 (velocity times steps over length), which takes a grid of 256^3 or finer.

    Arguments:
        lattice: The velocities, or their name, in 3-D.
        collision: How populations relax, or its name.
        reynolds: Velocity times wave length over 2 pi over viscosity.
        velocity: Largest velocity at the start in cells per step.

    Example:
        >>> from hotgrid.grid import Simulation, lbm
        >>> sim = Simulation(lbm.TaylorGreen3D(), size=(8, 8, 8), compiled=False)
        >>> sim.run(2).steps
        2

    Raises:
        ArgumentError: A parameter is out of bounds, or the lattice is not in 3-D.
    """

    reynolds = Parameter(1600.0, "velocity times length over viscosity", above=0)

    def __init__(
        self,
        lattice: Lattice | str = D3Q27,
        collision: Collision | str = "cumulant",
        **parameters: float,
    ) -> None:
        super().__init__(lattice, collision, **parameters)
        if self.lattice.rank != 3:
            raise ArgumentError(
                f"`lattice` must be one in 3-D, D3Q19 or D3Q27, got {self.lattice}; "
                "in the plane there is `TaylorGreen`"
            )

    @observable
    def dissipation(self, state: State) -> Tensor:
        """Twice the viscosity times mean enstrophy, times length over velocity cubed."""
        size = tuple(state["f"].shape[1:])
        mean = self.enstrophy(state) / math.prod(size)
        viscosity = self.viscosity_in(self.numbers(size))
        return 2 * viscosity * mean * self.length(size) / self.velocity**3


def _phases(size: tuple[int, ...]) -> list[Tensor]:
    """From 0 to 2 pi along each axis, float64 `[*space]` each."""
    axes = [2 * math.pi * x / n for x, n in zip(places(size, torch.float64), size, strict=True)]
    return list(torch.meshgrid(*axes, indexing="ij"))
