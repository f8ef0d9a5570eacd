"""The base of boundaries: the cells they apply to, and the populations they replace.

A step pulls populations from their upstream cells, lets every boundary, in order,
replace some of them, and collides. Without a boundary, the grid is periodic.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, near
from hotgrid.grid.lbm._lattice import Lattice
from hotgrid.grid.lbm._moments import is_zero
from hotgrid.grid.model import Input, Neighbours, in_window, window_shape

from ._forces import cut_links, exchanged_momentum

Number = float | str
"""A number, or the name of a parameter of the model."""
Shape = Tensor | Callable[[tuple[int, ...]], Tensor]
"""Something for every cell: a tensor `[*space]`, or a function from a size to one."""

MARKS = "boundaries"
"""The input that holds, for every cell, one bit for each boundary."""


def own_name(place: int, name: str) -> str:
    """The name, among the inputs of a model, of an input of one boundary."""
    return f"boundary {place} {name}"


def has_bits(code: Tensor, bits: int) -> Tensor:
    """Whether a whole number that is not negative has any of some bits, bool like `code`."""
    # A comparison of floats: masks of whole numbers are slow to blend floats with on
    # some processors (measured, 30 against 54 MLUPS).
    return (code & bits).to(torch.float32) > 0


@dataclass(frozen=True)
class Site:
    """The data that a boundary sees in a step.

    Attributes:
        lattice: The lattice.
        f: The stored populations, as they were after the last collision.
        inputs: The static inputs of the model.
        params: The parameters of the model, 0-d tensors.
        place: The place of this boundary among those of the model.
    """

    lattice: Lattice
    f: Neighbours
    inputs: Mapping[str, Neighbours]
    params: Mapping[str, Any]
    place: int

    @property
    def here(self) -> tuple[int, ...]:
        """The offset of a cell to itself."""
        return (0,) * self.lattice.rank

    def marked(self) -> Tensor:
        """Whether a cell belongs to this boundary, bool `[*space]`."""
        return has_bits(self.inputs[MARKS][self.here], 1 << self.place)

    def own(self, name: str) -> Tensor:
        """An input of this boundary alone, `[*space]`."""
        return self.inputs[own_name(self.place, name)][self.here]

    def value(self, number: Number) -> Any:
        """The number, or the parameter of that name."""
        return self.params[number] if isinstance(number, str) else number


class Boundary(ABC):
    """Cells it governs, and populations it selects there.

    Example:
        >>> class Hush(Boundary):
        ...     def cells(self, size):
        ...         return torch.arange(size[0]).unsqueeze(1).expand(size) == 0
        ...     def select(self, site, pulled):
        ...         return [torch.where(site.marked(), 0.0, plane) for plane in pulled]
        >>> Hush().cells((2, 3)).int()
        tensor([[1, 1, 1],
                [0, 0, 0]], dtype=torch.int32)
    """

    obstacle: ClassVar[bool] = False
    """Whether its cells are solid, so that drag and lift are taken on them."""
    marks: ClassVar[bool] = True
    """Whether a step needs to know which cells are its own."""
    quiet_elsewhere: ClassVar[bool] = False
    """Whether it changes nothing in cells that are not its own, nor where its inputs with
    `quiet_at_zero` are zero: a CPU then does without it there."""

    temperature: Number | None = None
    """The temperature that it holds, in flows that carry one; None lets no heat through."""

    @property
    def leaks(self) -> bool:
        """Whether mass can pass through it."""
        return False

    @abstractmethod
    def cells(self, size: tuple[int, ...]) -> Tensor:
        """The cells it governs, bool `[*space]` on the CPU."""

    @abstractmethod
    def select(self, site: Site, pulled: Sequence[Tensor]) -> list[Tensor]:
        """The populations before the collision, some of them replaced.

        Arguments:
            site: What it can see.
            pulled: One `[*space]` for each population, after streaming.
        """

    def carry(self, site: Site, pulled: Sequence[Tensor]) -> list[Tensor]:
        """The populations of a temperature before their collision, some of them replaced.

        By default as those of the fluid, so that a wall lets no heat through.

        Arguments:
            site: What it can see, with the lattice and the populations of the temperature.
            pulled: One `[*space]` for each of these, after streaming.
        """
        return self.select(site, pulled)

    def settle(
        self, site: Site, pulled: Sequence[Tensor], collided: Sequence[Tensor]
    ) -> list[Tensor]:
        """The populations after the collision; unchanged by default."""
        return list(collided)

    def check(self, lattice: Lattice, numbers: Mapping[str, float]) -> None:  # noqa: B027
        """Raise `ArgumentError` where it does not suit the lattice; by default it does.

        Arguments:
            lattice: The lattice.
            numbers: The parameters of the model and what follows from the grid.
        """

    def inputs(self, lattice: Lattice) -> tuple[Input, ...]:
        """Inputs of its own beside the marks; by default none."""
        return ()

    def static(self, lattice: Lattice, size: tuple[int, ...]) -> dict[str, Tensor]:
        """The values of its own inputs for a grid, `[*space]` each, on the CPU."""
        return {}

    def links(self, lattice: Lattice, size: tuple[int, ...], device: torch.device | str) -> Any:
        """The links between fluid and solid, for `force`; computed once for a grid."""
        return cut_links(lattice, self.cells(size).to(device))

    def force(
        self, lattice: Lattice, f: Tensor, links: Any, numbers: Mapping[str, float]
    ) -> list[Tensor]:
        """The force of the fluid on it along each axis, double 0-d tensors.

        It is the momentum that populations exchange with it in one step; only called for
        obstacles.

        Arguments:
            lattice: The lattice.
            f: The stored populations, `[populations, *space]`.
            links: What `links` gave.
            numbers: The parameters of the model and what follows from the grid.
        """
        return exchanged_momentum(lattice, f, links)


FACES = ("x-", "x+", "y-", "y+", "z-", "z+")
"""The faces of a grid: the axis, and its low or high end."""


class Face(Boundary):
    """A boundary on one face of the grid.

    One of its own is a frozen dataclass with `face` and `select`, which replaces the
    populations that are `entering`.

    Attributes:
        face: `"x-"` is where x is lowest, `"y+"` where y is highest; z in 3-D only.

    Example:
        >>> from hotgrid.grid import lbm
        >>> wall = lbm.Wall("x-")
        >>> [lbm.D2Q9.velocities[i] for i in wall.entering(lbm.D2Q9)]
        [(0, 1), (1, 1), (-1, 1)]
    """

    face: str
    mirrors: ClassVar[bool] = False
    """Whether the flow continues beyond it as its mirror image, used for the initial state."""

    def __post_init__(self) -> None:
        if self.face not in FACES:
            raise ArgumentError(
                f"`face` {self.face!r} is unknown; use one of "
                f"{', '.join(FACES)}{near(self.face, FACES)}"
            )

    def cells(self, size: tuple[int, ...]) -> Tensor:
        """The outermost layer of cells at the face."""
        axis = self.axis(len(size))
        found = torch.zeros(size, dtype=torch.bool)
        found.select(axis, 0 if self.inward > 0 else size[axis] - 1).fill_(True)
        return found

    def axis(self, rank: int) -> int:
        """The axis of space across the face."""
        axes = "zyx"[-rank:]
        if self.face[0] not in axes:
            raise ArgumentError(f"there is no face {self.face!r} in {rank} dims")
        return axes.index(self.face[0])

    @property
    def inward(self) -> int:
        """The direction into the grid along that axis, 1 or -1."""
        return 1 if self.face[1] == "-" else -1

    def entering(self, lattice: Lattice) -> list[int]:
        """The populations that come in through the face, so that streaming lacks them."""
        axis = self.axis(lattice.rank)
        return [i for i, c in enumerate(lattice.velocities) if c[axis] == self.inward]

    def extrapolated(self, site: Site) -> dict[int, Tensor]:
        """The entering populations, from the last layer in place of one beyond it."""
        axis = self.axis(site.lattice.rank)
        new: dict[int, Tensor] = {}
        for i in self.entering(site.lattice):
            c = site.lattice.velocities[i]
            new[i] = site.f.part(i)[tuple(0 if a == axis else -x for a, x in enumerate(c))]
        return new

    def replaced(
        self, site: Site, pulled: Sequence[Tensor], new: Mapping[int, Tensor]
    ) -> list[Tensor]:
        """The populations, with new ones at the cells of the face."""
        here = site.marked()
        return [
            torch.where(here, new[i], plane) if i in new else plane
            for i, plane in enumerate(pulled)
        ]


def check_number(what: str, number: object, numbers: Mapping[str, float]) -> None:
    """Refuse what is neither a number nor the name of one."""
    if isinstance(number, str):
        if number not in numbers:
            raise ArgumentError(
                f"`{what}` names the parameter `{number}`, which the model does not have"
                f"{near(number, numbers)} (it has {', '.join(numbers)})"
            )
    elif isinstance(number, bool) or not isinstance(number, Real):
        raise ArgumentError(
            f"`{what}` must be a number, or the name of a parameter, got {number!r}"
        )


def check_vector(
    what: str, vector: object, lattice: Lattice, numbers: Mapping[str, float] | None = None
) -> None:
    """Refuse what is not one number for each axis; `numbers` are those that have a name."""
    axes = "zyx"[-lattice.rank :]
    parts = list(vector) if isinstance(vector, tuple | list) else []
    if len(parts) != lattice.rank:
        raise ArgumentError(
            f"`{what}` is one number for each axis, ({', '.join(axes)}) on {lattice}, "
            f"got {vector!r}"
        )
    for number in parts:
        if numbers is not None or not isinstance(number, str):
            check_number(what, number, numbers or {})


def spread(shape: Shape, size: tuple[int, ...], what: str) -> Tensor:
    """A shape as a tensor for a grid or window, or an `ArgumentError` that names it."""
    given = shape(size) if callable(shape) else shape
    try:
        found = in_window(torch.as_tensor(given), size)
    except (TypeError, ValueError, RuntimeError):
        raise ArgumentError(
            f"`{what}` must be a tensor of the size of the grid, or a function from the size "
            f"to one, got {given!r}"
        ) from None
    if tuple(found.shape) != window_shape(size):
        raise ArgumentError(
            f"`{what}` has the shape {tuple(found.shape)}, but the grid is {tuple(size)}"
        )
    return found


def dotted(site: Site, velocity: Sequence[Number], index: int) -> Any:
    """The velocity along the direction of a population; 0 where they are at right angles."""
    found: Any = 0.0
    for c, number in zip(site.lattice.velocities[index], velocity, strict=True):
        if c and not is_zero(number):
            found = found + c * site.value(number)
    return found
