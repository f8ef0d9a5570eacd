"""PorousMedium: slow flow between grains, and Darcy's law."""

import math
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, near
from hotgrid.grid.lbm._boundary import HalfWay
from hotgrid.grid.lbm._collision import Collision
from hotgrid.grid.lbm._observed import LatticeBoltzmann
from hotgrid.grid.model import Parameter, State, observable

Grains = Literal["random", "square"]
_GRAINS = ("random", "square")


class PorousMedium(LatticeBoltzmann):
    """A pressure gradient drives fluid along x between round grains in a periodic 2-D grid.

    The mean velocity is `permeability gradient / viscosity`, Darcy's law, and the
    permeability depends on the grains alone.

    Arguments:
        grains: `random` discs, which may overlap, or one disc: a `square` array of them.
        collision: How populations relax, or its name.
        seed: Where the random grains are.
        porosity: Share of the grid that is fluid, on average.
        grain: Radius of random grains in cells.
        gradient: Force on the fluid along x.
        viscosity: Kinematic viscosity.

    Example:
        >>> from hotgrid.grid import Simulation, lbm
        >>> sim = Simulation(lbm.PorousMedium(), size=(48, 48), compiled=False)
        >>> sim.run(200).steps
        200
        >>> sim.observe()["permeability"] > 0
        True

    Raises:
        ArgumentError: A parameter is out of bounds, `grains` is unknown, or the disc of a
            square array is wider than the grid or smaller than a cell.
    """

    porosity = Parameter(0.75, "share of fluid", above=0.21, high=0.99)
    grain = Parameter(5.0, "radius of random grains in cells", low=1)
    gradient = Parameter(1e-5, "force on the fluid along x")
    viscosity = Parameter(1 / 6, "kinematic viscosity in cells^2 per step", above=0)

    def __init__(
        self,
        grains: Grains = "random",
        collision: Collision | str = "trt",
        seed: int = 0,
        **parameters: float,
    ) -> None:
        if grains not in _GRAINS:
            raise ArgumentError(
                f"`grains` {grains!r} is unknown; use {', '.join(_GRAINS)}"
                f"{near(grains, _GRAINS)}"
            )
        super().__init__(
            collision=collision,
            boundaries=(HalfWay(self.grain_cells),),
            force=(0.0, "gradient"),
            parameters=parameters,
        )
        self.grains: Grains = grains
        self.seed = seed
        self._of_grid = {}

    def viscosity_in(self, numbers: Mapping[str, Any]) -> Any:
        """The parameter itself."""
        return numbers["viscosity"]

    def grain_cells(self, size: tuple[int, ...]) -> Tensor:
        """Where the grains are, bool `[y, x]`."""
        area = math.prod(size)
        if self.grains == "square":
            radius, middles = math.sqrt((1 - self.porosity) * area / math.pi), [[0.5, 0.5]]
            if 2 * radius > min(size):
                raise ArgumentError(
                    f"a disc that leaves a `porosity` of {self.porosity:g} on {tuple(size)} is "
                    f"{2 * radius:.1f} cells wide and touches itself across the edges; take a "
                    "square `size`, or a larger `porosity`"
                )
        else:
            # Of discs thrown at random, exp(-number area / all) stays free.
            radius = self.grain
            count = round(-math.log(self.porosity) * area / (math.pi * radius**2))
            generator = torch.Generator().manual_seed(self.seed)
            middles = torch.rand(max(1, count), 2, generator=generator).tolist()
        y, x = (torch.arange(n, dtype=torch.float64) + 0.5 for n in size)
        found = torch.zeros(size, dtype=torch.bool)
        for middle in middles:
            dy, dx = (
                torch.minimum((p - m * n).abs(), n - (p - m * n).abs())
                for p, m, n in zip((y, x), middle, size, strict=True)
            )
            found |= torch.hypot(dy[:, None], dx) < radius
        if not found.any():
            raise ArgumentError(
                f"a `porosity` of {self.porosity:g} leaves no solid cell on {tuple(size)}; "
                "take a larger `size`, or a smaller `porosity`"
            )
        return found

    @observable
    def permeability(self, state: State) -> Tensor:
        """Mean velocity along x, grains included, times viscosity over the force."""
        mean = self.velocities(state)[1].double().mean()
        return mean * self.viscosity / (self.gradient or math.inf)

    @observable
    def free_share(self, state: State) -> Tensor:
        """The share of cells that are fluid."""
        size, device = tuple(state["f"].shape[1:]), state["f"].device
        solid = self.solid(size, device)
        return torch.ones((), device=device) if solid is None else 1 - solid.double().mean()
