"""ShearMixing: a dye that two layers of shear mix."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from hotgrid.grid.lbm._collision import Collision
from hotgrid.grid.lbm._thermal import ThermalModel
from hotgrid.grid.model import Parameter, State, observable, total

from ._double_shear import DoubleShear


class ShearMixing(ThermalModel, DoubleShear):
    """A dye in the streams of `DoubleShear`, which roll up and mix it: a passive scalar.

    The stream in the middle has a dye of 1/2, the other one of -1/2. The dye is the
    temperature of the model.

    Arguments:
        collision: How populations relax, or its name.
        schmidt: Viscosity over diffusivity of the dye.
        reynolds: Velocity times width of the grid over viscosity.
        velocity: Velocity of the streams in cells per step.
        steepness: Height of the grid over thickness of a layer.
        ripple: Velocity across over velocity along, at the start.

    Example:
        >>> from hotgrid.grid import Simulation, lbm
        >>> sim = Simulation(lbm.ShearMixing(), size=(64, 64), compiled=False)
        >>> sim.run(10).steps
        10

    Raises:
        ArgumentError: A parameter is out of bounds.
    """

    windowed = True
    reynolds = Parameter(2000.0, "velocity times width over viscosity", above=0)
    steepness = Parameter(30.0, "height over thickness of a layer", above=0)
    schmidt = Parameter(1.0, "viscosity over diffusivity of the dye", above=0)
    picture = "temperature"

    def __init__(self, collision: Collision | str = "trt", **parameters: float) -> None:
        super().__init__(collision=collision, **parameters)

    def diffusivity_in(self, numbers: Mapping[str, Any]) -> Any:
        """Viscosity over Schmidt number."""
        return self.viscosity_in(numbers) / numbers["schmidt"]

    def warm(self, size: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """The dye, as smooth as the streams."""
        _, [_, along] = self.begin(size, generator)
        return along / (2 * self.velocity)

    @observable(over="sum")
    def unmixed(self, state: State) -> Tensor:
        """The dye squared over the whole grid; falls as it mixes."""
        return total(self.temperature(state) ** 2)
