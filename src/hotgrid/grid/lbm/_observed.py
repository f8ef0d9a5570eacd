"""The observables and views of a flow, and why it became unstable."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from hotgrid.cluster import Block, take
from hotgrid.grid.model import Brush, Over, State, observable, once, total, view

from ._boundary import Face
from ._engine import LatticeModel
from ._moments import equilibrium, is_zero, moments

SOUND = 3**-0.5
"""The speed of sound in cells per step."""


class LatticeBoltzmann(LatticeModel):
    """A flow on a lattice, with what can be seen of it.

    To write a new one, derive from this, give `viscosity_in` and, where it does not
    start from rest, `begin`; see `LatticeModel` for the arguments.

    Example:
        >>> from hotgrid.grid import lbm
        >>> list(lbm.Flow().observables())
        ['mass', 'momentum_x', 'momentum_y', 'kinetic_energy', 'enstrophy']
    """

    @view
    def speed(self, state: State) -> Tensor:
        """The length of the velocity, `[*space]`."""
        return _length(self.velocities(state))

    @view
    def density(self, state: State) -> Tensor:
        """The density, `[*space]`; one at rest."""
        return 1 + self._moments(state)[0]

    @view
    def pressure(self, state: State) -> Tensor:
        """The pressure above that of the fluid at rest, `[*space]`."""
        return self._moments(state)[0] / 3

    @view
    def velocity_x(self, state: State) -> Tensor:
        """The velocity along x, `[*space]`."""
        return self.velocities(state)[-1]

    @view
    def velocity_y(self, state: State) -> Tensor:
        """The velocity along y, `[*space]`."""
        return self.velocities(state)[-2]

    @view
    def velocity_z(self, state: State) -> Tensor:
        """The velocity along z, `[*space]`, in 3-D."""
        return self.velocities(state)[-3]

    @view
    def vorticity(self, state: State) -> Tensor:
        """The curl of the velocity, `[*space]`; in 3-D its length."""
        curl = self._curl(state)
        return curl[0] if len(curl) == 1 else _length(curl)

    @observable(over="sum")
    def mass(self, state: State) -> Tensor:
        """The mass of the whole grid; a solid cell counts as one."""
        excess = self._moments(state)[0]
        return total(excess) + excess.numel()

    @observable(over="sum")
    def momentum_x(self, state: State) -> Tensor:
        """The momentum of the fluid along x; solids have none."""
        return total(self._momentum(state)[-1])

    @observable(over="sum")
    def momentum_y(self, state: State) -> Tensor:
        """The momentum of the fluid along y; solids have none."""
        return total(self._momentum(state)[-2])

    @observable(over="sum")
    def momentum_z(self, state: State) -> Tensor:
        """The momentum of the fluid along z, in 3-D; solids have none."""
        return total(self._momentum(state)[-3])

    @observable(over="sum")
    def kinetic_energy(self, state: State) -> Tensor:
        """Half of density times velocity squared, over the whole grid."""
        density = self.density(state)
        return total(0.5 * density * self.speed(state) ** 2)

    @observable(over="sum")
    def enstrophy(self, state: State) -> Tensor:
        """Half of the vorticity squared, over the whole grid."""
        return total(0.5 * self.vorticity(state) ** 2)

    @observable
    def drag(self, state: State) -> Tensor:
        """The force of the fluid on all obstacles along x."""
        return self.force_on_obstacles(state)[-1]

    @observable
    def lift(self, state: State) -> Tensor:
        """The force of the fluid on all obstacles along y."""
        return self.force_on_obstacles(state)[-2]

    @once
    def velocities(self, state: State) -> list[Tensor]:
        """The velocity along each axis, `[*space]` each; zero in solids."""
        density = self.density(state)
        return [m / density for m in self._momentum(state)]

    @once
    def force_on_obstacles(self, state: State) -> list[Tensor]:
        """The force of the fluid on all obstacles along each axis, double 0-d tensors.

        By the momentum that populations exchange with the solid in one step.
        """
        f = state["f"]
        size = tuple(f.shape[1:])
        numbers = self.numbers(size)
        parts = [f.new_zeros((), dtype=torch.float64)] * self.lattice.rank
        for place, body in enumerate(self.boundaries):
            if body.obstacle:
                more = body.force(self.lattice, f, self._links(place, size, f.device), numbers)
                parts = [a + b for a, b in zip(parts, more, strict=True)]
        return parts

    def cause(self, state: State) -> str:
        """Relaxation time and Mach number of the last good state."""
        size = tuple(state["f"].shape[-self.lattice.rank :])
        rank = self.lattice.rank
        runs = {
            name: x.reshape(-1, *x.shape[-rank - 1 :]).unbind(0) for name, x in state.items()
        }
        fastest = max(
            self.speed(dict(zip(runs, run, strict=True))).nan_to_num().max().item()
            for run in zip(*runs.values(), strict=True)
        )
        return (
            f"tau is {self.tau(size):.4f} (near 0.5 short waves are hardly damped) and the "
            f"largest Mach number is {fastest / SOUND:.2f} (keep it below 0.3); take a finer "
            "grid, a larger viscosity, a lower velocity, or the collision lbm.Regularized()"
        )

    def brushes(self) -> Sequence[Brush]:
        """Walls, and places of another density, which send out sound."""
        return (
            Brush("solid", "Walls", "solid"),
            Brush("density", "Density", low=0.9, high=1.1, value=1.05),
        )

    def painted(self, state: State, brush: str, mask: Tensor, value: float) -> State:
        """Give the fluid under a stroke another density, at the velocity it has."""
        excess, _ = self._moments(state)
        other = excess.masked_fill(mask, value - 1)
        momentum = [(1 + other) * u for u in self.velocities(state)]
        planes = torch.stack(equilibrium(self.lattice, other, momentum))
        return {"f": torch.where(mask, planes.to(state["f"].dtype), state["f"])}

    def unit_of(self, view: str) -> str:
        """Units of the lattice: cells and steps."""
        if view == "speed" or view.startswith("velocity_"):
            return "cells/step"
        return "1/step" if view == "vorticity" else ""

    def reach_of(self, view: str) -> int | None:
        """A derivative takes the neighbours of a cell, everything else the cell itself."""
        return 1 if view == "vorticity" else 0

    def joined_axes(self, rank: int) -> tuple[bool, ...]:
        """Derivatives are one-sided at faces."""
        faces = [b.axis(rank) for b in self.boundaries if isinstance(b, Face)]
        return tuple(axis not in faces for axis in range(rank))

    def within(
        self, whole: tuple[int, ...], offset: tuple[int, ...], size: tuple[int, ...]
    ) -> "LatticeBoltzmann":
        """The flow with the solids of a box, and the numbers of the whole grid."""
        twin: Any = copy.copy(self)
        known: dict[str, Tensor | None] = {}

        def solid(size: tuple[int, ...], device: torch.device | str = "cpu") -> Tensor | None:
            if str(device) not in known:
                cells = self.solid(whole, device)
                known[str(device)] = None if cells is None else take(cells, box)
            return known[str(device)]

        box = Block(offset, size, whole)
        twin.solid, twin.numbers = solid, lambda size: self.numbers(whole)
        return twin

    def views(self) -> dict[str, Callable[[State], Tensor]]:
        """Pictures by name; `velocity_z` in 3-D only."""
        found = super().views()
        return {k: v for k, v in found.items() if k != "velocity_z" or self.lattice.rank == 3}

    def observables(self) -> dict[str, Callable[[State], Tensor]]:
        """Numbers by name; drag and lift only where there is a solid to take them on."""
        absent = {"momentum_z"} if self.lattice.rank == 2 else set()
        if not any(boundary.obstacle for boundary in self.boundaries):
            absent |= {"drag", "lift"}
        return {k: v for k, v in super().observables().items() if k not in absent}

    def over_parts(self, name: str) -> Over | None:
        """As declared; only masses where neighbours exert a force on a cell."""
        own = type(self)
        alone = (
            own.force_around is LatticeModel.force_around
            and own._moments is LatticeBoltzmann._moments
        )
        return super().over_parts(name) if alone or name.startswith("mass") else None

    @once
    def _moments(self, state: State) -> tuple[Tensor, list[Tensor]]:
        """Density minus one and momentum along each axis, half a step of force taken back."""
        f = state["f"]
        f = f if f.dtype == torch.float64 else f.float()
        excess, momentum = moments(self.lattice, f.unbind(0))
        force = self._force_in(state, excess)
        # Stored is what a collision left, and it has had the force of the whole step.
        for axis, x in enumerate(force):
            if not is_zero(x):
                momentum[axis] = momentum[axis] - 0.5 * x
        return excess, momentum

    def _force_in(self, state: State, excess: Tensor) -> Sequence[Any]:
        """The force on every cell of a state whose density minus one is given."""
        axes = tuple(range(excess.ndim))
        return self.force_around(
            lambda at: 1 + torch.roll(excess, tuple(-a for a in at), axes),
            self.numbers(tuple(excess.shape)),
        )

    @once
    def _momentum(self, state: State) -> list[Tensor]:
        """The momentum along each axis, `[*space]` each; zero in solids."""
        excess, momentum = self._moments(state)
        solid = self.solid(tuple(excess.shape), excess.device)
        return momentum if solid is None else [torch.where(solid, 0.0, m) for m in momentum]

    @once(reach=1)
    def _curl(self, state: State) -> list[Tensor]:
        u = self.velocities(state)
        last = self.lattice.rank - 1
        pairs = [(last - 1, last)] if last == 1 else [(1, 2), (2, 0), (0, 1)]
        return [self._slope(u[a], b) - self._slope(u[b], a) for a, b in pairs]

    def _slope(self, plane: Tensor, axis: int) -> Tensor:
        """The derivative along an axis, one-sided at faces that are not joined."""
        faces = [b.axis(self.lattice.rank) for b in self.boundaries if isinstance(b, Face)]
        if axis in faces and plane.shape[axis] > 1:
            return torch.gradient(plane, dim=axis)[0]
        return (torch.roll(plane, -1, axis) - torch.roll(plane, 1, axis)) / 2

    def _links(self, place: int, size: tuple[int, ...], device: torch.device) -> Any:
        key = ("links", place, size, str(device))
        if key not in self._known:
            self._known[key] = self.boundaries[place].links(self.lattice, size, device)
        return self._known[key]


def _length(parts: Sequence[Tensor]) -> Tensor:
    """The length of a vector with one `[*space]` along each axis."""
    # A norm of stacked parts takes ten times as long on a CPU.
    squared = parts[0] * parts[0]
    for part in parts[1:]:
        squared = torch.addcmul(squared, part, part)
    return squared.sqrt()
