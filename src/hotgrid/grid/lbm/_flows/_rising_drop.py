"""RisingDrop: a drop of one liquid that rises in another."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from hotgrid.grid.lbm._mixture import TwoComponents
from hotgrid.grid.model import Parameter, State, observable

# The share of the component that a region has less of, and half the width of a surface.
_TRACE, _SURFACE = 0.06, 2.0


class RisingDrop(TwoComponents):
    """A drop of the first component rises in the second, in a periodic grid.

    Gravity pushes the drop up and the rest down as much, so that all of it stays where it
    is. With no gravity it is a round drop at rest.

    Arguments:
        lattice: The velocities, or their name; `D3Q19` or `D3Q27` in 3-D.
        gravity: Acceleration of the drop relative to the rest.
        radius_over_width: Radius of the drop over the narrowest side of the grid.
        repulsion: How strongly the components repel each other.
        viscosity: Kinematic viscosity of both.

    Example:
        >>> from hotgrid.grid import Simulation, lbm
        >>> sim = Simulation(lbm.RisingDrop(gravity=1e-4), size=(48, 32), compiled=False)
        >>> before = sim.observe()["height"]
        >>> sim.run(200).steps
        200
        >>> sim.observe()["height"] > before
        True

    Raises:
        ArgumentError: A parameter is out of bounds.
    """

    gravity = Parameter(2e-5, "acceleration of the drop relative to the rest")
    radius_over_width = Parameter(0.2, "radius over the narrowest side", above=0, high=0.45)

    def __init__(self, *args: Any, **parameters: Any) -> None:
        super().__init__(*args, **parameters)
        if self.lattice.rank == 2:
            self.size = (256, 128)

    def shares(self, size: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """A ball in the lower part of the grid."""
        axes = [torch.arange(n, dtype=torch.float64) + 0.5 for n in size]
        places = torch.meshgrid(*axes, indexing="ij")
        centre = [n / 2 for n in size]
        if self.gravity:
            centre[-2] = max(size[-2] / 4, (self.radius_over_width + 0.05) * min(size))
        squares = [(x - c) ** 2 for x, c in zip(places, centre, strict=True)]
        away = torch.stack(squares).sum(0)
        inside = self.radius_over_width * min(size) - torch.sqrt(away)
        return 0.5 + (0.5 - _TRACE) * torch.tanh(inside / _SURFACE)

    def begin(
        self, size: tuple[int, ...], generator: torch.Generator
    ) -> tuple[Tensor, list[Tensor]]:
        """Fluid at rest, with one pressure inside, outside and across the surface."""
        _, rest = super().begin(size, generator)
        share = self.shares(size, generator)
        strength = self.repulsion * share * (1 - share)
        wanted = 1 + self.repulsion * _TRACE * (1 - _TRACE)
        # The root of strength density^2 + density = wanted, which a repulsion of 0 has too.
        return 2 * wanted / (1 + torch.sqrt(1 + 4 * strength * wanted)), rest

    def of_grid(self, size: tuple[int, ...]) -> dict[str, float]:
        """The share of the drop in all of the mass."""
        density, _ = self.begin(size, torch.Generator())
        drop = density * self.shares(size, torch.Generator())
        return {"whole": (drop.sum() / density.sum()).item()}

    def pushes(self, numbers: Mapping[str, Any]) -> tuple[Any, Any]:
        """Up for the drop, down for the rest, nothing in all."""
        whole, gravity = numbers["whole"], numbers["gravity"]
        return gravity * (1 - whole), -gravity * whole

    @observable
    def height(self, state: State) -> Tensor:
        """The middle of the drop along y, in cells, in a periodic grid."""
        share = self.share(state).double() - _TRACE
        n = share.shape[-2]
        across = tuple(a for a in range(share.ndim) if a != share.ndim - 2)
        turn = 2 * math.pi / n * (torch.arange(n, device=share.device).double() + 0.5)
        rows = share.sum(across)
        angle = torch.atan2((rows * turn.sin()).sum(), (rows * turn.cos()).sum())
        return angle.remainder(2 * math.pi) * n / (2 * math.pi)
