"""Two components that repel each other: what oil and water share (Shan and Chen 1993)."""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from hotgrid.grid.model import (
    Brush,
    Field,
    Neighbours,
    Parameter,
    Planes,
    State,
    observable,
    once,
    total,
    view,
)

from ._boundary import spread
from ._collision import TRT
from ._lattice import D2Q9, Lattice
from ._moments import at_equilibrium, equilibrium, is_zero, moments, slopes_around
from ._observed import LatticeBoltzmann

_NAMES = ("f", "g")
Densities = Sequence[Callable[[tuple[int, ...]], Tensor]]
"""The density of either component in the cell at an offset."""


class TwoComponents(LatticeBoltzmann):
    """The base of mixtures of two components that repel each other (Shan and Chen 1993).

    The fields `f` and `g` are the populations of the components. The force on one of them
    is `-repulsion density(x) sum w_i other(x + c_i) c_i`, and the pressure
    `(first + second + repulsion first second) / 3`. Both move with one velocity and drift
    apart (Porter 2012). Where the repulsion times the density is above 2, a mixture
    separates. A case defines `shares`, and `pushes` if gravity acts.

    Arguments:
        lattice: The velocities, or their name.
        repulsion: How strongly the components repel each other.
        viscosity: Kinematic viscosity of both.
    """

    radius = 2
    picture = "share"
    windowed = True
    makers = (*LatticeBoltzmann.makers, "shares")
    repulsion = Parameter(3.0, "how strongly the components repel each other", low=0, high=5)
    viscosity = Parameter(1 / 6, "kinematic viscosity in cells^2 per step", above=0)

    def __init__(self, lattice: Lattice | str = D2Q9, **parameters: float) -> None:
        # The momentum of a component is not conserved: odd parts must relax at one rate.
        super().__init__(lattice=lattice, collision=TRT(magic=1 / 4), parameters=parameters)
        self.fields = tuple(Field(name, components=self.lattice.count) for name in _NAMES)
        self.conserved = ("mass_first", "mass_second")

    def viscosity_in(self, numbers: Mapping[str, Any]) -> Any:
        """The parameter itself."""
        return numbers["viscosity"]

    @abstractmethod
    def shares(self, size: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """The share of the first component in the density to start from, `[*space]`."""

    def pushes(self, numbers: Mapping[str, Any]) -> tuple[Any, Any]:
        """The acceleration of either component up y; by default none."""
        return 0.0, 0.0

    def forces(self, densities: Densities, numbers: Mapping[str, Any]) -> list[list[Tensor]]:
        """The force on either component along each axis, `[*space]` each.

        Arguments:
            densities: The density of either component in the cell at an offset.
            numbers: The numbers of `numbers`, floats or 0-d tensors.
        """
        rank, found = self.lattice.rank, []
        for one, other, push in zip(
            densities, reversed(densities), self.pushes(numbers), strict=True
        ):
            own = one((0,) * rank)
            away = -numbers["repulsion"] * own
            force = [away * slope for slope in slopes_around(self.lattice, other)]
            if not is_zero(push):
                force[-2] = force[-2] + push * own
            found.append(force)
        return found

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> Mapping[str, Planes]:
        """Move both components, let them repel each other, collide at a common velocity."""
        numbers = self._numbers_here(params)
        omega = self._omega(inputs, numbers)
        came = [self._arrived(state[name], inputs, numbers) for name in _NAMES]
        found = [moments(self.lattice, pulled) for _, pulled in came]
        forces = self.forces([self._density_around(state[name]) for name in _NAMES], numbers)
        volume = (2 + found[0][0] + found[1][0]).reciprocal()
        velocity = [
            (a + b + 0.5 * (x + y)) * volume
            for a, b, x, y in zip(found[0][1], found[1][1], *forces, strict=True)
        ]
        after: dict[str, Planes] = {}
        for name, (sites, pulled), (excess, _), force in zip(
            _NAMES, came, found, forces, strict=True
        ):
            momentum = [(1 + excess) * u for u in velocity]
            left = self.collision.collided(self.lattice, pulled, excess, momentum, force, omega)
            after[name] = self._settled(sites, pulled, left)
        return after

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """The density and velocity of `begin`, and the share of the first of `shares`."""
        density, velocity = self._checked_begin(size, generator)
        share, solid = spread(self.shares(size, generator), size, "share"), self.solid(size)
        begun = {
            name: at_equilibrium(self.lattice, density * part, velocity)
            for name, part in zip(_NAMES, (share, 1 - share), strict=True)
        }
        if solid is not None:
            begun = {name: f.masked_fill_(solid, 0.0) for name, f in begun.items()}
        return begun

    def initial_bytes(self, size: tuple[int, ...]) -> int:
        """Both components in double precision."""
        return 8 * math.prod(size) * (2 * self.lattice.count + 2 * self.lattice.rank + 3)

    @view
    def share(self, state: State) -> Tensor:
        """The share of the first component in the density, `[*space]`."""
        first, second = self._densities(state)
        return first / (first + second)

    @view
    def pressure(self, state: State) -> Tensor:
        """The pressure far from surfaces, `[*space]`."""
        first, second = self._densities(state)
        return (first + second + self.repulsion * first * second) / 3

    @observable(over="sum")
    def mass_first(self, state: State) -> Tensor:
        """The mass of the first component; a solid cell counts as one."""
        return total(self._densities(state)[0])

    @observable(over="sum")
    def mass_second(self, state: State) -> Tensor:
        """The mass of the second component; a solid cell counts as one."""
        return total(self._densities(state)[1])

    @observable
    def contrast(self, state: State) -> Tensor:
        """The difference between the largest and the smallest share."""
        share = self.share(state)
        return share.max() - share.min()

    def force_on_obstacles(self, state: State) -> list[Tensor]:
        """The force of both components on all obstacles along each axis."""
        of = [LatticeBoltzmann.force_on_obstacles(self, {"f": state[name]}) for name in _NAMES]
        return [a + b for a, b in zip(*of, strict=True)]

    def brushes(self) -> Sequence[Brush]:
        """Walls, and places of one component or the other."""
        walls = [brush for brush in super().brushes() if brush.kind == "solid"]
        return (*walls, Brush("share", "First component", low=0.02, high=0.98, value=0.95))

    def painted(self, state: State, brush: str, mask: Tensor, value: float) -> State:
        """Give the fluid under a stroke another share, at the density and velocity it has."""
        density, velocity, found = self.density(state), self.velocities(state), {}
        for name, share in zip(_NAMES, (value, 1 - value), strict=True):
            part = share * density
            momentum = [part * u for u in velocity]
            planes = torch.stack(equilibrium(self.lattice, part - 1, momentum))
            found[name] = torch.where(mask, planes.to(state[name].dtype), state[name])
        return found

    def reach_of(self, view: str) -> int | None:
        """The velocity takes the force, which the neighbours of a cell exert."""
        return {"vorticity": 2, "density": 0, "pressure": 0, "share": 0}.get(view, 1)

    @once
    def _densities(self, state: State) -> list[Tensor]:
        """The density of either component, `[*space]` each."""
        return [1 + excess for excess, _ in self._both(state)]

    @once
    def _both(self, state: State) -> list[tuple[Tensor, list[Tensor]]]:
        stored = [state[name] for name in _NAMES]
        wide = [x if x.dtype == torch.float64 else x.float() for x in stored]
        return [moments(self.lattice, f.unbind(0)) for f in wide]

    @once
    def _moments(self, state: State) -> tuple[Tensor, list[Tensor]]:
        """Moments of both components: density minus one, and momentum along each axis."""
        densities = self._densities(state)
        axes = tuple(range(densities[0].ndim))

        def around(density: Tensor) -> Callable[[tuple[int, ...]], Tensor]:
            return lambda at: torch.roll(density, tuple(-a for a in at), axes)

        numbers = self.numbers(tuple(densities[0].shape))
        forces = self.forces([around(density) for density in densities], numbers)
        # Stored is what a collision left, and it has had the force of the whole step.
        momentum = [
            a + b - 0.5 * (x + y)
            for a, b, x, y in zip(*(m for _, m in self._both(state)), *forces, strict=True)
        ]
        return densities[0] + densities[1] - 1, momentum
