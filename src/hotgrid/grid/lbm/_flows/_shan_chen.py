"""ShanChen: a fluid that separates into liquid and vapour."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, near
from hotgrid.grid.lbm._collision import Collision
from hotgrid.grid.lbm._moments import slopes_around
from hotgrid.grid.lbm._observed import LatticeBoltzmann
from hotgrid.grid.model import Parameter, State, observable, places, uniform, view, window_shape

Begin = Literal["mist", "drop", "layer"]
_BEGINS = ("mist", "drop", "layer")
_CRITICAL = 4.0
# Cells over which density changes at a surface, about.
_SURFACE = 2.5


class ShanChen(LatticeBoltzmann):
    """A fluid that separates into liquid and vapour, in 2-D (Shan and Chen 1993).

    Cells attract their neighbours: the force is `attraction psi(x) sum w_i psi(x + c_i) c_i`
    with `psi = 1 - exp(-density)`, so the pressure is `density / 3 - attraction psi^2 / 6`.
    Above an attraction of 4 there are two densities with one pressure, see `coexistence`. All
    edges are periodic.

    Arguments:
        begin: `mist` of the density `filling` with small noise, a round `drop` of a quarter of
            the grid across in its vapour, or a `layer` of liquid across x.
        collision: How populations relax, or its name.
        attraction: How strongly cells attract each other.
        filling: Mean density of the mist.
        viscosity: Kinematic viscosity.

    Example:
        >>> from hotgrid.grid import Simulation, lbm
        >>> sim = Simulation(lbm.ShanChen(), size=(48, 48), compiled=False)
        >>> sim.run(300).steps
        300
        >>> sim.observe()["contrast"] > 0.5
        True

    Raises:
        ArgumentError: A parameter is out of bounds, or `begin` is unknown.
    """

    windowed = True
    radius = 2
    picture = "density"
    attraction = Parameter(5.0, "how strongly cells attract each other", low=0, high=6.5)
    filling = Parameter(0.7, "mean density of the mist", above=0, high=3)
    viscosity = Parameter(1 / 6, "kinematic viscosity in cells^2 per step", above=0)

    def __init__(
        self, begin: Begin = "mist", collision: Collision | str = "trt", **parameters: float
    ) -> None:
        super().__init__(collision=collision, parameters=parameters)
        if begin not in _BEGINS:
            raise ArgumentError(
                f"`begin` {begin!r} is unknown; use {', '.join(_BEGINS)}{near(begin, _BEGINS)}"
            )
        if begin != "mist" and self.attraction <= _CRITICAL:
            raise ArgumentError(
                f"a {begin} needs an `attraction` above {_CRITICAL:g}, got "
                f"{self.attraction:g}: up to it there is one density only"
            )
        self.begins: Begin = begin
        self._of_grid = {}

    def viscosity_in(self, numbers: Mapping[str, Any]) -> Any:
        """The parameter itself."""
        return numbers["viscosity"]

    def force_around(
        self, density: Callable[[tuple[int, ...]], Tensor], numbers: Mapping[str, Any]
    ) -> Sequence[Tensor]:
        """The force by which the neighbours of a cell pull it, along each axis."""
        pulls = slopes_around(self.lattice, lambda at: _potential(density(at)))
        own = numbers["attraction"] * _potential(density((0,) * self.lattice.rank))
        return [own * pull for pull in pulls]

    def begin(
        self, size: tuple[int, ...], generator: torch.Generator
    ) -> tuple[Tensor, list[Tensor]]:
        """The density to start from, at rest."""
        rest = torch.zeros(window_shape(size), dtype=torch.float64)
        if self.begins == "mist":
            noise = uniform(size, generator, torch.float64) - 0.5
            return self.filling * (1 + 0.02 * noise), [rest, rest]
        y, x = (x - (n - 1) / 2 for x, n in zip(places(size, torch.float64), size, strict=True))
        inside = (
            min(size) / 4 - torch.hypot(y[:, None], x)
            if self.begins == "drop"
            else (size[1] / 4 - x.abs()).expand(rest.shape)
        )
        vapour, liquid = self.coexistence()
        share = 0.5 + 0.5 * torch.tanh(inside / _SURFACE)
        return vapour + (liquid - vapour) * share, [rest, rest]

    def coexistence(self) -> tuple[float, float]:
        """The densities of vapour and liquid beside each other, across a flat surface.

        From mechanical stability: one pressure, and no work on a way across the surface
        (Shan 2008).

        Raises:
            ArgumentError: The attraction is too weak for two densities.
        """
        if self.attraction <= _CRITICAL:
            raise ArgumentError(
                f"there is one density only up to an `attraction` of {_CRITICAL:g}, "
                f"got {self.attraction:g}"
            )
        return _coexistence(self.attraction)

    @view
    def pressure(self, state: State) -> Tensor:
        """The pressure far from surfaces, `[*space]`."""
        return _pressure(self.density(state), self.attraction)

    @observable
    def contrast(self, state: State) -> Tensor:
        """The difference between the largest and the smallest density."""
        lowest, highest = self.density(state).aminmax()
        return (highest - lowest).double()

    def reach_of(self, view: str) -> int | None:
        """A velocity takes the force, which the neighbours of a cell exert."""
        return {"vorticity": 2, "density": 0, "pressure": 0}.get(view, 1)


def _potential(density: Tensor) -> Tensor:
    return 1 - torch.exp(-density)


def _pressure(density: Any, attraction: float) -> Any:
    potential = 1 - (
        np.exp(-density) if isinstance(density, np.ndarray) else torch.exp(-density)
    )
    return density / 3 - attraction / 6 * potential * potential


@cache
def _coexistence(attraction: float) -> tuple[float, float]:
    """Densities of one pressure p between which (p(rho) - p) psi' / psi sums to nothing."""
    rho = np.linspace(1e-4, 8, 400_000)
    p = _pressure(rho, attraction)
    weight = np.exp(-rho) / (1 - np.exp(-rho)) * (rho[1] - rho[0])
    falls = np.flatnonzero(np.diff(p) < 0)
    top, bottom = falls[0], falls[-1] + 1

    def ends(level: float) -> tuple[int, int]:
        return (
            int(np.searchsorted(p[: top + 1], level)),
            bottom + int(np.searchsorted(p[bottom:], level)),
        )

    low, high = max(p[bottom], p[0]), p[top]
    while high - low > 1e-12:
        level = (low + high) / 2
        a, b = ends(level)
        work = float(((p[a:b] - level) * weight[a:b]).sum())
        low, high = (level, high) if work > 0 else (low, level)
    a, b = ends((low + high) / 2)
    return float(rho[a]), float(rho[b])
