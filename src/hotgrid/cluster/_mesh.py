"""`Mesh`: how ranks are laid out over the axes of a grid. Plain integers, no tensors."""

import itertools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass

from hotgrid.errors import ArgumentError

from ._block import Block, per_axis, shares


@dataclass(frozen=True, init=False, repr=False)
class Mesh:
    """Ranks in a row, a rectangle or a box.

    Axis k of the mesh cuts axis k of the grid; axes that the mesh does not name stay
    whole. So on a 3-D grid `4` cuts the first axis, `1x4` the second, `2x2` the first two.
    Ranks are counted as cells are: the last axis runs fastest.

    Args:
        shape: Ranks along each axis: `"2x2"`, `(2, 2)`, a number, or a mesh.

    Raises:
        ArgumentError: It is not text of that kind, or a number below 1.

    Example:
        >>> mesh = Mesh("2x3")
        >>> mesh.ranks, mesh.coordinate(4), mesh.rank((1, 1))
        (6, (1, 1), 4)
        >>> mesh.neighbour(4, (0, 1)), mesh.neighbour(4, (1, 0), periodic=False)
        (5, None)
        >>> mesh.block(4, (10, 10))
        Block(offset=(5, 4), size=(5, 3), whole=(10, 10))
    """

    shape: tuple[int, ...]

    def __init__(self, shape: "str | int | Sequence[int] | Mesh") -> None:
        object.__setattr__(self, "shape", _shape(shape))

    def __str__(self) -> str:
        return "x".join(map(str, self.shape))

    def __repr__(self) -> str:
        return f"Mesh('{self}')"

    @property
    def ranks(self) -> int:
        """How many ranks there are."""
        return math.prod(self.shape)

    def coordinate(self, rank: int) -> tuple[int, ...]:
        """Return the place of a rank along each axis.

        Raises:
            ArgumentError: There is no such rank.
        """
        if not 0 <= rank < self.ranks:
            raise ArgumentError(
                f"there is no rank {rank} in mesh `{self}`: use 0 to {self.ranks - 1}"
            )
        place = []
        for count in reversed(self.shape):
            rank, here = divmod(rank, count)
            place.append(here)
        return tuple(reversed(place))

    def rank(self, coordinate: Sequence[int]) -> int:
        """Return the rank at a place.

        Raises:
            ArgumentError: The place is outside of the mesh.
        """
        place = per_axis("coordinate", coordinate, len(self.shape))
        if any(not 0 <= here < n for here, n in zip(place, self.shape, strict=True)):
            raise ArgumentError(f"the place {place} is outside of mesh `{self}`")
        rank = 0
        for here, count in zip(place, self.shape, strict=True):
            rank = rank * count + here
        return rank

    def neighbour(
        self, rank: int, offset: Sequence[int], periodic: bool | Sequence[bool] = True
    ) -> int | None:
        """Return the rank at an offset from another, or None beyond a bounded end.

        Along a periodic axis of one rank that is the rank itself.

        Raises:
            ArgumentError: There is no such rank, or not one offset for every axis.
        """
        wraps = per_axis("periodic", periodic, len(self.shape))
        steps = per_axis("offset", offset, len(self.shape))
        place = []
        for here, step, count, wrap in zip(
            self.coordinate(rank), steps, self.shape, wraps, strict=True
        ):
            if not wrap and not 0 <= here + step < count:
                return None
            place.append((here + step) % count)
        return self.rank(place)

    def neighbours(
        self, rank: int, periodic: bool | Sequence[bool] = True, *, diagonals: bool = True
    ) -> dict[tuple[int, ...], int]:
        """Return the ranks around one, by their offsets: -1, 0 or 1 along each axis.

        Example:
            >>> Mesh("2x2").neighbours(0, periodic=False)
            {(0, 1): 1, (1, 0): 2, (1, 1): 3}
        """
        found = {}
        for offset in itertools.product((-1, 0, 1), repeat=len(self.shape)):
            steps = sum(map(abs, offset))
            if steps == 1 or (steps > 1 and diagonals):
                other = self.neighbour(rank, offset, periodic)
                if other is not None:
                    found[offset] = other
        return found

    def over(self, axes: int) -> "Mesh":
        """Return the mesh with an entry for every axis of a grid.

        Raises:
            ArgumentError: The mesh has more axes than the grid.

        Example:
            >>> Mesh("1x4").over(3)
            Mesh('1x4x1')
        """
        if len(self.shape) > axes:
            kept = "x".join(map(str, self.shape[:axes]))
            raise ArgumentError(
                f"mesh `{self}` has {len(self.shape)} axes, but the grid has {axes}: "
                f"write a mesh of at most {axes}, such as `{kept}`"
            )
        return Mesh((*self.shape, *(1,) * (axes - len(self.shape))))

    def block(self, rank: int, size: Sequence[int]) -> Block:
        """Return what a rank owns of a grid of `size` cells.

        The blocks of all ranks cover every cell once. Where a size does not divide, the
        first ranks own one cell more.

        Raises:
            ArgumentError: There is no such rank, or an axis has more ranks than cells.
        """
        whole = tuple(size)
        mesh = self.over(len(whole))
        mesh._check_cells(whole)
        offsets, sizes = [], []
        for here, cells, parts in zip(mesh.coordinate(rank), whole, mesh.shape, strict=True):
            owned = shares(cells, parts)
            offsets.append(sum(owned[:here]))
            sizes.append(owned[here])
        return Block(tuple(offsets), tuple(sizes), whole)

    def blocks(self, size: Sequence[int]) -> tuple[Block, ...]:
        """Return what every rank owns, in the order of ranks.

        Raises:
            ArgumentError: As for `block`.
        """
        return tuple(self.block(rank, size) for rank in range(self.ranks))

    def largest_margin(self, size: Sequence[int]) -> tuple[int, ...]:
        """Return the widest margin along each axis: the cells of the smallest block.

        Example:
            >>> Mesh("3").largest_margin((20, 8))
            (6, 8)
        """
        mesh = self.over(len(size))
        return tuple(cells // parts for cells, parts in zip(size, mesh.shape, strict=True))

    def check_margin(
        self, size: Sequence[int], margin: int | Sequence[int], *, depth: int | None = None
    ) -> None:
        """Raise unless every block can fill the margins of its neighbours.

        Args:
            size: Cells of the grid along each axis.
            margin: One width for all cut axes, or one for every axis.
            depth: The steps between two exchanges that the margin is for, to be named.

        Raises:
            ArgumentError: A block has fewer cells than the margin; the message says which
                margin and which mesh would fit. Every rank raises the same error.
        """
        mesh = self.over(len(size))
        if isinstance(margin, int):
            margin = [margin * (parts > 1) for parts in mesh.shape]
        widths = per_axis("margin", margin, len(size))
        for axis, (width, largest) in enumerate(
            zip(widths, self.largest_margin(size), strict=True)
        ):
            if width <= largest:
                continue
            cause = f" (`depth` {depth})" if depth else ""
            text = (
                f"a margin of {width}{cause} does not fit: mesh `{self}` on the grid "
                f"{_times(size)} leaves blocks of {largest} cells along axis {axis}. Use a "
                f"{'smaller `depth`, with a ' * bool(cause)}margin of at most {largest}"
            )
            if parts := size[axis] // width:
                fewer = Mesh((*mesh.shape[:axis], parts, *mesh.shape[axis + 1 :]))
                text += f", or fewer ranks there, such as mesh `{fewer}`"
            raise ArgumentError(text)

    def check_ranks(self, started: int) -> None:
        """Raise unless as many ranks were started as the mesh has.

        Raises:
            ArgumentError: There are more or fewer; the message says what to do.
        """
        if started != self.ranks:
            raise ArgumentError(
                f"mesh `{self}` needs {self.ranks} ranks, but {started} were started: start "
                f"{self.ranks}, or choose a mesh of {started}, such as `{started}`"
            )

    def _check_cells(self, size: Sequence[int]) -> None:
        for axis, (cells, parts) in enumerate(zip(size, self.shape, strict=True)):
            if parts <= cells:
                continue
            raise ArgumentError(
                f"mesh `{self}` cuts axis {axis} of the grid {_times(size)} into {parts} "
                f"parts, but it has {cells} cells: use at most {cells} ranks there"
            )


def _times(size: Sequence[int]) -> str:
    return "x".join(map(str, size))


def _shape(given: "str | int | Sequence[int] | Mesh") -> tuple[int, ...]:
    if isinstance(given, Mesh):
        return given.shape
    try:
        if isinstance(given, str):
            shape = tuple(int(part) for part in given.lower().split("x"))
        elif isinstance(given, int):
            shape = (operator.index(given),)
        else:
            shape = tuple(map(operator.index, given))
    except (TypeError, ValueError):
        shape = ()
    if not shape or min(shape) < 1 or isinstance(given, bool):
        raise ArgumentError(
            f"mesh `{given}` must be whole numbers from 1 on, joined by `x`: "
            "`4`, `2x2` or `2x2x2`"
        )
    return shape
