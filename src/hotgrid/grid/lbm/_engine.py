"""The engine of the family: pull, boundaries, collide, in one expression."""

import copy
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.model import (
    Field,
    GridWindow,
    Input,
    Model,
    Neighbours,
    Planes,
    State,
    brief,
    in_window,
    window_on,
    window_shape,
)

from ._boundary import (
    MARKS,
    Boundary,
    Face,
    HalfWay,
    Number,
    Shape,
    Site,
    check_vector,
    own_name,
    spread,
)
from ._collision import Collision, find_collision, relaxed_pairs
from ._lattice import D2Q9, Lattice, find_lattice
from ._moments import is_zero, moments
from ._start import START_REACH, at_start

LOWEST_TAU = 0.5001
_VISCOSITY_MAP = "viscosity_map"


class LatticeModel(Model):
    """The base of all flows on a lattice; a flow defines its viscosity and its boundaries.

    The field `f` is `[populations, *space]`: what was left by the last collision,
    shifted by the weights of the lattice. Space is `[y, x]` in 2-D and `[z, y, x]` in
    3-D, and vectors have their components in the same order. Everything is in lattice
    units: one cell, one step, a density of one.

    Arguments:
        parameters: The parameters of the flow, by name.
        lattice: The velocities, or their name; they set the number of dims.
        collision: How populations relax, or its name.
        boundaries: Applied in this order; without any, the grid is periodic.
        force: Force on every cell along each axis (Guo); empty for none.
        viscosity_map: What the viscosity is multiplied by, `[*space]`, or a function
            from the size; None is one everywhere.
    """

    picture = "speed"
    y_up = True
    carries_heat: ClassVar[bool] = False
    """Whether a temperature moves with the flow."""
    windowed = True
    makers = (*Model.makers, "begin")
    # What follows from the grid; None until the model is fitted to one.
    _of_grid: Mapping[str, float] | None = None
    # Solid cells that were painted by hand, bool `[*space]`, and their boundary.
    _painted: tuple[Tensor, Boundary] | None = None

    def __init__(
        self,
        *,
        parameters: Mapping[str, float],
        lattice: Lattice | str = D2Q9,
        collision: Collision | str = "trt",
        boundaries: Sequence[Boundary] = (),
        force: Sequence[Number] = (),
        viscosity_map: Shape | None = None,
    ) -> None:
        super().__init__(**parameters)
        lattice = find_lattice(lattice)
        self.lattice = lattice
        self.collision = find_collision(collision)
        self.collision.check(lattice)
        self.boundaries = _checked_boundaries(boundaries)
        self.force = _checked_force(force, lattice)
        self.viscosity_map = viscosity_map
        self.fields = (Field("f", components=lattice.count),)
        self.ranks = (lattice.rank,)
        self.size = (256, 256) if lattice.rank == 2 else (64, 64, 64)
        self.inputs = self._declared_inputs()
        self.conserved = () if any(b.leaks for b in self.boundaries) else ("mass",)
        self._known: dict[tuple[Any, ...], Any] = {}

    @abstractmethod
    def viscosity_in(self, numbers: Mapping[str, Any]) -> Any:
        """The kinematic viscosity, from the numbers of `numbers`, floats or 0-d tensors."""

    def force_in(self, numbers: Mapping[str, Any]) -> Sequence[Any]:
        """The force on a cell along each axis, floats or 0-d tensors; empty for none."""
        found = [numbers[f] if isinstance(f, str) else f for f in self.force]
        return () if all(is_zero(f) for f in found) else found

    def force_around(
        self, density: Callable[[tuple[int, ...]], Tensor], numbers: Mapping[str, Any]
    ) -> Sequence[Any]:
        """The force on every cell, from the density of cells at offsets; by default `force_in`.

        Arguments:
            density: The density `[*space]` of the cell at an offset.
            numbers: The numbers of `numbers`, floats or 0-d tensors.
        """
        return self.force_in(numbers)

    def numbers(self, size: tuple[int, ...]) -> dict[str, float]:
        """The parameters, and what follows from the grid."""
        return {**self.parameters, **self.of_grid(size)}

    def of_grid(self, size: tuple[int, ...]) -> dict[str, float]:
        """Numbers beside the parameters that follow from the grid; by default none."""
        return {}

    def fitted(self, size: tuple[int, ...]) -> Model:
        """A copy with the numbers of this grid, so that its steps can use them."""
        twin = copy.copy(self)
        twin._of_grid = self.of_grid(size)
        return twin

    def changed(self, **parameters: float) -> Self:
        """The same flow with other values of some parameters; painted solids stay."""
        made = super().changed(**parameters)
        return made if self._painted is None else made.with_solid(self._painted[0])

    def with_solid(self, cells: Tensor) -> Self:
        """The flow with solid cells beside its own obstacles; fluid bounces off half-way."""
        twin = copy.copy(self)
        before = self._painted
        kept = [b for b in self.boundaries if before is None or b is not before[1]]
        painted = HalfWay(cells.cpu())
        twin.boundaries = (*kept, painted)
        twin._painted = (cells, painted)
        twin.inputs = twin._declared_inputs()
        twin._known = {}
        return twin

    def quiet(self) -> Model | None:
        """The flow without boundaries, where all of them are quiet elsewhere."""
        mute = all(b.quiet_elsewhere for b in self.boundaries)
        if not self.boundaries or not mute or type(self).step is not LatticeModel.step:
            return None
        twin = copy.copy(self)
        twin.boundaries = ()
        twin.inputs = twin._declared_inputs()
        return twin

    def begin(
        self, size: tuple[int, ...], generator: torch.Generator
    ) -> tuple[Tensor, list[Tensor]]:
        """Density `[*space]` and velocity along each axis to start from; by default rest."""
        rest = torch.zeros(window_shape(size), dtype=torch.float64)
        return rest + 1, [rest] * self.lattice.rank

    def tau(self, size: tuple[int, ...]) -> float:
        """The relaxation time on a grid; the viscosity is `(tau - 1/2) / 3`."""
        return 3 * float(self.viscosity_in(self.numbers(size))) + 0.5

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> Mapping[str, Planes]:
        """Pull from upstream cells, apply boundaries, collide."""
        numbers, f = self._numbers_here(params), state["f"]
        sites, pulled = self._arrived(f, inputs, numbers)
        force = self.force_around(self._density_around(f), numbers)
        collided = self._collide(pulled, self._omega(inputs, numbers), force)
        return {"f": self._settled(sites, pulled, collided)}

    def _numbers_here(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of a step, and what follows from the grid."""
        if self._of_grid is None:
            raise ArgumentError(
                f"{type(self).__name__} takes its steps on a grid: step `model.fitted(size)`"
            )
        return {**params, **self._of_grid}

    def _sites(
        self,
        lattice: Lattice,
        f: Neighbours,
        inputs: Mapping[str, Neighbours],
        numbers: Mapping[str, Any],
    ) -> list[Site]:
        """The site of every boundary, for some populations."""
        return [Site(lattice, f, inputs, numbers, k) for k in range(len(self.boundaries))]

    def _arrived(
        self, f: Neighbours, inputs: Mapping[str, Neighbours], numbers: Mapping[str, Any]
    ) -> tuple[list[Site], list[Tensor]]:
        """The sites of boundaries, and the populations that come into a collision."""
        sites = self._sites(self.lattice, f, inputs, numbers)
        found = streamed(self.lattice, f)
        for boundary, site in zip(self.boundaries, sites, strict=True):
            found = boundary.select(site, found)
        return sites, found

    def _settled(
        self, sites: Sequence[Site], pulled: Sequence[Tensor], collided: Sequence[Tensor]
    ) -> Sequence[Tensor]:
        """The populations after a collision and what boundaries do then."""
        for boundary, site in zip(self.boundaries, sites, strict=True):
            collided = boundary.settle(site, pulled, collided)
        return collided

    def _omega(self, inputs: Mapping[str, Neighbours], numbers: Mapping[str, Any]) -> Any:
        """The rate of relaxation that the viscosity gives."""
        viscosity = self.viscosity_in(numbers)
        if self.viscosity_map is not None:
            viscosity = viscosity * inputs[_VISCOSITY_MAP][(0,) * self.lattice.rank]
        return 1 / (3 * viscosity + 0.5)

    def _density_around(self, f: Neighbours) -> Callable[[tuple[int, ...]], Tensor]:
        """The density of the cell at an offset, once populations have moved."""

        def density(at: tuple[int, ...]) -> Tensor:
            return 1 + moments(self.lattice, streamed(self.lattice, f, at))[0]

        return density

    def _collide(
        self, g: Sequence[Tensor], omega: Tensor, force: Sequence[Any]
    ) -> list[Tensor]:
        lattice = self.lattice
        excess, momentum = moments(lattice, g)
        if force:
            momentum = [
                m if is_zero(x) else m + 0.5 * x for m, x in zip(momentum, force, strict=True)
            ]
        rates = None if force else self.collision.rates(omega)
        if rates is not None:
            return relaxed_pairs(lattice, g, excess, momentum, rates)
        return self.collision.collided(lattice, g, excess, momentum, force, omega)

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """The density and velocity of `begin` with the stress they cause, rest in solids."""
        size, inside = self._around(size)
        density, velocity = self._checked_begin(size, generator)
        numbers, solid = self.numbers(tuple(size)), self.solid(size)
        viscosity = self.viscosity_in(numbers)
        if self.viscosity_map is not None:
            viscosity = viscosity * spread(self.viscosity_map, size, _VISCOSITY_MAP).double()
        f = at_start(
            self.lattice,
            density,
            velocity,
            collision=self.collision,
            tau=3 * viscosity + 0.5,
            force=self.force_in(numbers),
            faces=[b for b in self.boundaries if isinstance(b, Face)],
            solid=solid,
        )
        f = f if solid is None else f.masked_fill_(solid, 0.0)
        return {"f": f[(..., *inside)]}

    def _around(self, size: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[slice, ...]]:
        """A window with the cells that gradients read beside it, and where it is in there."""
        whole = (slice(None),) * len(size)
        if not isinstance(size, GridWindow):
            return size, whole
        faces = {b.axis(len(size)) for b in self.boundaries if isinstance(b, Face)}
        joined = [axis not in faces for axis in range(len(size))]
        around = window_on(size.block.padded(START_REACH, joined), windowed=True)
        if not isinstance(around, GridWindow):
            return around, whole
        sides = size.block.margins(START_REACH, joined)
        return around, tuple(
            slice(low, low + n) for (low, _), n in zip(sides, size.block.size, strict=True)
        )

    def initial_bytes(self, size: tuple[int, ...]) -> int:
        """Populations, density and velocity in double precision, and some slabs."""
        return 8 * math.prod(size) * (self.lattice.count + 2 * self.lattice.rank + 1)

    def static(self, size: tuple[int, ...]) -> State:
        """Marks of the boundaries, one bit each, and what they need beside them."""
        # Whole also for a window: walls reach around corners, and marks are bytes.
        size = tuple(size)
        numbers = self.numbers(size)
        if self.force:
            check_vector("force", self.force, self.lattice, numbers)
        for boundary in self.boundaries:
            boundary.check(self.lattice, numbers)
            if boundary.temperature is not None and not self.carries_heat:
                raise ArgumentError(
                    f"{boundary!r} has a `temperature`, and {type(self).__name__} carries "
                    "none; use `ThermalFlow`"
                )
        self._check_relaxation(size)
        self._check_faces(size)
        found: State = {}
        for k, boundary in enumerate(self.boundaries):
            own = boundary.static(self.lattice, size)
            found |= {own_name(k, name): x for name, x in own.items()}
        if any(boundary.marks for boundary in self.boundaries):
            found[MARKS] = torch.zeros(size, dtype=self._marks_dtype())
            for k, boundary in enumerate(self.boundaries):
                found[MARKS] |= boundary.cells(size).to(found[MARKS].dtype) << k
        if self.viscosity_map is not None:
            factor = spread(self.viscosity_map, size, _VISCOSITY_MAP)
            if not bool((factor > 0).all()):
                raise ArgumentError(f"`{_VISCOSITY_MAP}` must be above 0 everywhere")
            found[_VISCOSITY_MAP] = factor
        return found

    def solid(self, size: tuple[int, ...], device: torch.device | str = "cpu") -> Tensor | None:
        """Where any obstacle is solid, bool `[*space]`; None without obstacles."""
        bodies = [b for b in self.boundaries if b.obstacle]
        if not bodies:
            return None
        key = ("solid", size, str(device))
        if key not in self._known:
            masks = [in_window(boundary.cells(size), size) for boundary in bodies]
            self._known[key] = torch.stack(masks).any(0).to(device)
        return self._known[key]

    def _checked_begin(
        self, size: tuple[int, ...], generator: torch.Generator
    ) -> tuple[Tensor, list[Tensor]]:
        begun: Any = self.begin(size, generator)
        pair = isinstance(begun, Sequence) and len(begun) == 2
        parts = list(begun[1]) if pair and isinstance(begun[1], Sequence | Tensor) else []
        if len(parts) != self.lattice.rank:
            got = f"a velocity of {brief(begun[1])}" if pair else brief(begun)
            raise ArgumentError(
                f"{type(self).__name__} must begin with a density and a velocity, one tensor "
                f"{size} for each of {self.lattice.rank} axes: (density, [uy, ux]) in 2-D; "
                f"got {got}"
            )
        # A number is the same everywhere.
        density, *velocity = (
            torch.full(window_shape(size), float(x), dtype=torch.float64)
            if isinstance(x, Real)
            else x
            for x in (begun[0], *parts)
        )
        density = spread(density, size, "density")
        solid, wrong = self.solid(size), ~(density > 0)
        if solid is not None:
            wrong &= ~solid
        if wrong.any():
            worst = density.detach()[wrong].min().item()
            raise ArgumentError(
                f"{type(self).__name__} begins with a density of {worst:g}; expected one above "
                "0 in every cell of the fluid"
            )
        return density, [spread(u, size, "velocity") for u in velocity]

    def _declared_inputs(self) -> tuple[Input, ...]:
        found = [
            replace(known, name=own_name(k, known.name))
            for k, boundary in enumerate(self.boundaries)
            for known in boundary.inputs(self.lattice)
        ]
        if any(boundary.marks for boundary in self.boundaries):
            found.append(Input(MARKS, dtype=self._marks_dtype(), quiet_at_zero=True))
        if self.viscosity_map is not None:
            found.append(Input(_VISCOSITY_MAP))
        return tuple(found)

    def _marks_dtype(self) -> torch.dtype:
        return torch.uint8 if len(self.boundaries) <= 8 else torch.int32

    def _check_faces(self, size: tuple[int, ...]) -> None:
        """Each axis is periodic, or both of its faces have a boundary."""
        faces = {b.face: b for b in self.boundaries if isinstance(b, Face)}
        solid = self.solid(size)
        for face, boundary in faces.items():
            far = face[0] + ("+" if face[1] == "-" else "-")
            layer = 0 if far[1] == "-" else size[boundary.axis(len(size))] - 1
            closed = solid is not None and bool(
                solid.select(boundary.axis(len(size)), layer).all()
            )
            if far not in faces and not closed:
                raise ArgumentError(
                    f"the face {face!r} has a boundary and {far!r} has none, but an axis is "
                    f"periodic unless both faces have one; add a boundary at {far!r}"
                )

    def _check_relaxation(self, size: tuple[int, ...]) -> None:
        tau = self.tau(size)
        if not tau >= LOWEST_TAU:
            raise ArgumentError(
                f"the relaxation time of {type(self).__name__} on {size} is tau = {tau:.6f}, "
                f"and below {LOWEST_TAU} nothing damps the flow; take a finer grid, a larger "
                "viscosity (a smaller Reynolds number), or a larger velocity"
            )


def streamed(lattice: Lattice, f: Neighbours, at: Sequence[int] = ()) -> list[Tensor]:
    """Populations that have moved to a cell, or to the one at an offset."""
    at = at or (0,) * lattice.rank
    return [
        f.part(i)[tuple(a - x for a, x in zip(at, c, strict=True))]
        for i, c in enumerate(lattice.velocities)
    ]


def _checked_boundaries(boundaries: object) -> tuple[Boundary, ...]:
    found = tuple(boundaries) if isinstance(boundaries, Iterable) else (None,)
    if not all(isinstance(each, Boundary) for each in found):
        raise ArgumentError(
            "`boundaries` is a list of boundaries, such as [Wall('y-'), Wall('y+')], got "
            f"{boundaries!r}"
        )
    return found  # pyright: ignore[reportReturnType]


def _checked_force(force: object, lattice: Lattice) -> tuple[Number, ...]:
    text = isinstance(force, str)
    found: Any = tuple(force) if isinstance(force, Iterable) and not text else force
    if found != ():
        check_vector("force", found, lattice)
    return found
