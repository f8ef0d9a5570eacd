"""Flows that carry a temperature, which may drive them: Boussinesq, or a passive scalar.

The temperature has populations of its own on a smaller lattice. They move with the
velocity of the fluid, and relax at the rate that the diffusivity gives.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.model import (
    Brush,
    Field,
    Neighbours,
    Parameter,
    Planes,
    State,
    expect_callable,
    in_window,
    observable,
    places,
    total,
    view,
)

from ._boundary import Site, spread
from ._collision import TRT
from ._engine import LOWEST_TAU, streamed
from ._flow import Flow
from ._lattice import CARRIERS, Lattice
from ._moments import combined, is_zero, moments
from ._observed import LatticeBoltzmann

Warmth = Callable[[tuple[int, ...], torch.Generator], Tensor]
"""From size and generator to the temperature `[*space]`."""

# Even moments of the temperature: 1/4 is the most stable.
_MAGIC = TRT(magic=1 / 4)


def carried(lattice: Lattice, temperature: Tensor, velocity: Sequence[Tensor]) -> list[Tensor]:
    """The populations of a temperature that moves with a velocity, `[*space]` each."""
    found = [lattice.weights[0] * temperature] * lattice.count
    for i, o in lattice.pairs:
        even = lattice.weights[i] * temperature
        odd = even * combined(lattice.velocities[i], velocity) / lattice.spread
        found[i], found[o] = even + odd, even - odd
    return found


class ThermalModel(LatticeBoltzmann):
    """The base of flows that carry a temperature.

    The field `g` is `[populations, *space]`, on `D2Q5` or `D3Q7`; its sum over populations
    is the temperature, zero where nothing pushes the fluid. A flow defines
    `diffusivity_in`, `warm`, and `buoyancy_in` if the temperature drives it.

    Arguments:
        options: As for `LatticeBoltzmann`.

    Example:
        >>> from hotgrid.grid import lbm
        >>> [field.components for field in lbm.RayleighBenard().fields]
        [9, 5]
    """

    picture = "temperature"
    carries_heat = True
    windowed = True
    makers = (*LatticeBoltzmann.makers, "warm")

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.carrier = CARRIERS[self.lattice.rank]
        self.fields = (*self.fields, Field("g", components=self.carrier.count))
        if all(b.temperature is None for b in self.boundaries) and self.conserved:
            self.conserved = (*self.conserved, "heat")

    @abstractmethod
    def diffusivity_in(self, numbers: Mapping[str, Any]) -> Any:
        """The diffusivity of the temperature, from the numbers of `numbers`."""

    def buoyancy_in(self, numbers: Mapping[str, Any]) -> Any:
        """The acceleration up y for a temperature of one; by default 0: a passive scalar."""
        return 0.0

    @abstractmethod
    def warm(self, size: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """The temperature to start from, `[*space]`."""

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> Mapping[str, Planes]:
        """Move both kinds of populations, push the fluid by buoyancy, collide."""
        numbers = self._numbers_here(params)
        sites, pulled = self._arrived(state["f"], inputs, numbers)
        warm_sites = self._sites(self.carrier, state["g"], inputs, numbers)
        warm = self._warm_arrived(warm_sites, state["g"])
        temperature = combined([1] * self.carrier.count, warm)
        force = self._pushed(temperature, numbers)
        collided = self._collide(pulled, self._omega(inputs, numbers), force)
        excess, momentum = moments(self.lattice, pulled)
        volume = (1 + excess).reciprocal()
        velocity = [
            (m if not force or is_zero(force[a]) else m + 0.5 * force[a]) * volume
            for a, m in enumerate(momentum)
        ]
        relaxed = self._mixed(warm, temperature, velocity, numbers)
        return {
            "f": self._settled(sites, pulled, collided),
            "g": self._settled(warm_sites, warm, relaxed),
        }

    def _warm_arrived(self, sites: Sequence[Site], g: Neighbours) -> list[Tensor]:
        found = streamed(self.carrier, g)
        for boundary, site in zip(self.boundaries, sites, strict=True):
            found = boundary.carry(site, found)
        return found

    def _pushed(self, temperature: Tensor, numbers: Mapping[str, Any]) -> Sequence[Any]:
        """The force on every cell along each axis: that of the flow, and buoyancy along y."""
        found, buoyancy = list(self.force_in(numbers)), self.buoyancy_in(numbers)
        if is_zero(buoyancy):
            return found
        found = found or [0.0] * self.lattice.rank
        lift = buoyancy * temperature
        found[-2] = lift if is_zero(found[-2]) else found[-2] + lift
        return found

    def _mixed(
        self,
        g: Sequence[Tensor],
        temperature: Tensor,
        velocity: Sequence[Tensor],
        numbers: Mapping[str, Any],
    ) -> list[Tensor]:
        """The populations of the temperature after a collision, at two rates."""
        lattice = self.carrier
        odd_rate = 1 / (self.diffusivity_in(numbers) / lattice.spread + 0.5)
        _, even_rate = _MAGIC.rates(odd_rate)
        rest = carried(lattice, temperature, velocity)
        found = [g[0] - even_rate * (g[0] - rest[0])] * lattice.count
        for i, o in lattice.pairs:
            a, b = g[i] - rest[i], g[o] - rest[o]
            even, odd = (0.5 * even_rate) * (a + b), (0.5 * odd_rate) * (a - b)
            found[i], found[o] = g[i] - (even + odd), g[o] - (even - odd)
        return found

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """The flow of `begin` and the temperature of `warm`, none in solids."""
        begun = {"f": in_window(super().initial(size, generator)["f"], size)}
        warm = spread(self.warm(size, generator), size, "temperature").double()
        excess, momentum = moments(self.lattice, begun["f"].unbind(0))
        velocity = [m / (1 + excess) for m in momentum]
        g, solid = torch.stack(carried(self.carrier, warm, velocity)), self.solid(size)
        return {**begun, "g": g if solid is None else g.masked_fill_(solid, 0.0)}

    def initial_bytes(self, size: tuple[int, ...]) -> int:
        """Both kinds of populations in double precision."""
        return super().initial_bytes(size) + 16 * math.prod(size) * self.carrier.count

    def static(self, size: tuple[int, ...]) -> State:
        """As for any flow, once the diffusivity is checked."""
        tau = float(self.diffusivity_in(self.numbers(size))) / self.carrier.spread + 0.5
        if not tau >= LOWEST_TAU:
            raise ArgumentError(
                f"the temperature of {type(self).__name__} on {size} relaxes in tau = "
                f"{tau:.6f}, and below {LOWEST_TAU} nothing damps it; take a finer grid or a "
                "larger diffusivity"
            )
        return super().static(size)

    @view
    def temperature(self, state: State) -> Tensor:
        """The temperature, `[*space]`."""
        g = state["g"]
        g = g if g.dtype == torch.float64 else g.float()
        return combined([1] * self.carrier.count, g.unbind(0))

    @observable(over="sum")
    def heat(self, state: State) -> Tensor:
        """The temperature summed over the whole grid."""
        return total(self.temperature(state))

    def brushes(self) -> Sequence[Brush]:
        """Walls, and warm or cold places."""
        walls = [brush for brush in super().brushes() if brush.kind == "solid"]
        return (*walls, Brush("temperature", "Temperature", low=-1.0, high=1.0, value=0.5))

    def painted(self, state: State, brush: str, mask: Tensor, value: float) -> State:
        """Give the fluid under a stroke another temperature, at the velocity it has."""
        warm = self.temperature(state).masked_fill(mask, value)
        planes = torch.stack(carried(self.carrier, warm, self.velocities(state)))
        return {"g": torch.where(mask, planes.to(state["g"].dtype), state["g"])}

    def _force_in(self, state: State, excess: Tensor) -> Sequence[Any]:
        return self._pushed(self.temperature(state), self.numbers(tuple(excess.shape)))


class ThermalFlow(ThermalModel, Flow):
    """A fluid put together from parts, with a temperature that lifts it (Boussinesq).

    Walls and inlets hold a temperature if they are given one, and let no heat through
    if not. With a buoyancy of zero the temperature is a dye that drifts along. By default
    a warm ball rises in a box with joined ends.

    Arguments:
        warmth: From size and generator to the temperature `[*space]`; by default a ball.
        parts: Lattice, collision, boundaries, force, viscosity_map and start as for
            `Flow`, and the parameters.
        viscosity: Kinematic viscosity.
        diffusivity: Diffusivity of the temperature.
        buoyancy: Acceleration up y for a temperature of one.

    Example:
        >>> from hotgrid.grid import Simulation, lbm
        >>> heated = lbm.ThermalFlow(
        ...     boundaries=[lbm.Wall("y-", temperature=1.0), lbm.Wall("y+", temperature=0.0)],
        ...     warmth=lambda size, generator: torch.zeros(size),
        ... )
        >>> sim = Simulation(heated, size=(16, 16), compiled=False)
        >>> sim.run(20).steps
        20
        >>> sim.observe()["heat"] > 0
        True

    Raises:
        ArgumentError: A parameter is out of bounds.
    """

    windowed = True
    diffusivity = Parameter(0.02, "diffusivity of the temperature in cells^2 per step", above=0)
    buoyancy = Parameter(1e-4, "acceleration up y for a temperature of one")

    def __init__(self, *, warmth: Warmth | None = None, **parts: Any) -> None:
        super().__init__(**parts)
        if warmth is not None:
            expect_callable("warmth", warmth, "size and generator")
        self.warmth = warmth

    def diffusivity_in(self, numbers: Mapping[str, Any]) -> Any:
        """The parameter itself."""
        return numbers["diffusivity"]

    def buoyancy_in(self, numbers: Mapping[str, Any]) -> Any:
        """The parameter itself."""
        return numbers["buoyancy"]

    def warm(self, size: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """The temperature to start from."""
        if self.warmth is not None:
            return self.warmth(size, generator)
        axes = torch.meshgrid(*[x + 0.5 for x in places(size, torch.float64)], indexing="ij")
        centre = [n / 2 for n in size]
        centre[-2] = size[-2] / 4
        squares = [(x - c) ** 2 for x, c in zip(axes, centre, strict=True)]
        away = torch.stack(squares).sum(0)
        return torch.exp(-away / (min(size) / 10) ** 2)
