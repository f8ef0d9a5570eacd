"""Flow: a fluid put together from parts, with its viscosity as a parameter."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from hotgrid.grid.model import Parameter, expect_callable

from ._boundary import Boundary, Number, Shape
from ._collision import Collision
from ._lattice import D2Q9, Lattice
from ._observed import LatticeBoltzmann

Start = Callable[[tuple[int, ...], torch.Generator], tuple[Tensor, list[Tensor]]]
"""From size and generator to density `[*space]` and velocity along each axis."""


class Flow(LatticeBoltzmann):
    """A fluid put together from parts.

    Space is `[y, x]` in 2-D and `[z, y, x]` in 3-D; vectors have their components in
    the same order. Everything is in lattice units: see `Units`.

    Arguments:
        lattice: The velocities, or their name; they set the number of dims.
        collision: How populations relax, or its name.
        boundaries: Applied in this order; without any, the grid is periodic.
        force: Force on every cell along each axis; empty for none.
        viscosity_map: What the viscosity is multiplied by, `[*space]`, or a function
            from the size.
        start: From size and generator to density `[*space]` and velocity along each
            axis; by default rest.
        viscosity: Kinematic viscosity; the relaxation time is three times it plus 1/2.

    Example:
        >>> from hotgrid.grid import Simulation, lbm
        >>> channel = lbm.Flow(
        ...     boundaries=[lbm.Wall("y-"), lbm.Wall("y+")], force=(0, 1e-5), viscosity=0.1
        ... )
        >>> sim = Simulation(channel, size=(16, 4), compiled=False)
        >>> sim.run(10).steps
        10

    Raises:
        ArgumentError: A parameter is out of bounds.
    """

    windowed = True
    viscosity = Parameter(0.02, "kinematic viscosity in cells^2 per step", above=0)

    def __init__(
        self,
        *,
        lattice: Lattice | str = D2Q9,
        collision: Collision | str = "trt",
        boundaries: Sequence[Boundary] = (),
        force: Sequence[Number] = (),
        viscosity_map: Shape | None = None,
        start: Start | None = None,
        **parameters: float,
    ) -> None:
        super().__init__(
            lattice=lattice,
            collision=collision,
            boundaries=boundaries,
            force=force,
            viscosity_map=viscosity_map,
            parameters=parameters,
        )
        if start is not None:
            expect_callable("start", start, "size and generator")
        self.start = start
        self._of_grid = {}

    def viscosity_in(self, numbers: Mapping[str, Any]) -> Any:
        """The parameter itself."""
        return numbers["viscosity"]

    def begin(
        self, size: tuple[int, ...], generator: torch.Generator
    ) -> tuple[Tensor, list[Tensor]]:
        """Density and velocity to start from."""
        start = super().begin if self.start is None else self.start
        return start(size, generator)
