"""RayleighBenard: a layer of fluid heated from below."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from hotgrid.grid.lbm._boundary import Wall
from hotgrid.grid.lbm._collision import Collision
from hotgrid.grid.lbm._thermal import ThermalModel
from hotgrid.grid.model import Parameter, State, observable


class RayleighBenard(ThermalModel):
    """A layer of fluid between a warm plate, at `y-`, and a cold one; periodic along x, in 2-D.

    Above a Rayleigh number of 1708 the fluid turns over in rolls, far above it plumes
    rise. Temperatures are 1/2 and -1/2 at the plates.

    Arguments:
        collision: How populations relax, or its name.
        rayleigh: Buoyancy times height cubed over viscosity and diffusivity.
        prandtl: Viscosity over diffusivity.
        velocity: The root of buoyancy times height, in cells per step: how fast plumes get.
        ripple: Largest random temperature at the start.

    Example:
        >>> from hotgrid.grid import Simulation, lbm
        >>> sim = Simulation(lbm.RayleighBenard(), size=(32, 64), compiled=False)
        >>> sim.run(10).steps
        10

    Raises:
        ArgumentError: A parameter is out of bounds.
    """

    rayleigh = Parameter(1e6, "buoyancy times height^3 / (viscosity diffusivity)", above=0)
    prandtl = Parameter(1.0, "viscosity over diffusivity", above=0)
    velocity = Parameter(
        0.1, "root of buoyancy times height in cells per step", above=0, high=0.3
    )
    ripple = Parameter(0.05, "largest random temperature at the start", low=0, high=0.5)

    def __init__(self, collision: Collision | str = "trt", **parameters: float) -> None:
        super().__init__(
            collision=collision,
            boundaries=(Wall("y-", temperature=0.5), Wall("y+", temperature=-0.5)),
            parameters=parameters,
        )
        self.size = (128, 256)

    def of_grid(self, size: tuple[int, ...]) -> dict[str, float]:
        """The height of the layer in cells."""
        return {"height": float(size[0])}

    def viscosity_in(self, numbers: Mapping[str, Any]) -> Any:
        """The viscosity, from Rayleigh and Prandtl number."""
        scale = numbers["velocity"] * numbers["height"]
        return scale * (numbers["prandtl"] / numbers["rayleigh"]) ** 0.5

    def diffusivity_in(self, numbers: Mapping[str, Any]) -> Any:
        """Viscosity over Prandtl number."""
        return self.viscosity_in(numbers) / numbers["prandtl"]

    def buoyancy_in(self, numbers: Mapping[str, Any]) -> Any:
        """Velocity squared over height."""
        return numbers["velocity"] ** 2 / numbers["height"]

    def begin(
        self, size: tuple[int, ...], generator: torch.Generator
    ) -> tuple[Tensor, list[Tensor]]:
        """Fluid at rest, with the pressure that balances its initial buoyancy."""
        _, [up, along] = super().begin(size, generator)
        y = self._heights(size)
        lift = 1.5 * self.velocity**2 * y * (1 - y)
        return 1 + lift - lift.mean(), [up, along]

    def warm(self, size: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Straight from warm to cold, with noise between the plates."""
        noise = 2 * torch.rand(size, generator=generator, dtype=torch.float64) - 1
        y = self._heights(size)
        return 0.5 - y + self.ripple * noise * (4 * y * (1 - y))

    def _heights(self, size: tuple[int, ...]) -> Tensor:
        """The height of every cell, from 0 to 1, float64 `[y, x]`."""
        y = (torch.arange(size[0], dtype=torch.float64) + 0.5) / size[0]
        return y.unsqueeze(1).expand(size)

    @observable
    def nusselt(self, state: State) -> Tensor:
        """The heat that passes from plate to plate, over that of a fluid at rest."""
        temperature = self.temperature(state)
        numbers = self.numbers(tuple(temperature.shape))
        flux = (self.velocities(state)[0] * temperature).double().mean()
        return 1 + flux * numbers["height"] / self.diffusivity_in(numbers)
