"""`Block`: the cells of a grid that one rank owns. Plain integers, no tensors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from hotgrid.errors import ArgumentError

Value = TypeVar("Value", bool, int)


def shares(count: int, parts: int) -> tuple[int, ...]:
    """How many of `count` things each of `parts` gets; the first ones get the remainder.

    Raises:
        ArgumentError: `count` is negative or there are no parts.

    Example:
        >>> shares(10, 4)
        (3, 3, 2, 2)
    """
    if count < 0 or parts < 1:
        raise ArgumentError(
            f"cannot share {count} among {parts}: expected at least 0 items and at least 1 part"
        )
    # Not divmod: a compiler that leaves sizes open knows these two only.
    each, more = count // parts, count % parts
    return tuple([each + 1 if part < more else each for part in range(parts)])


def per_axis(name: str, value: Value | Sequence[Value], axes: int) -> tuple[Value, ...]:
    """Return one value for every axis, from one for all or from a sequence."""
    if isinstance(value, int):
        return (value,) * axes
    values = tuple(value)
    if len(values) != axes:
        raise ArgumentError(
            f"`{name}` {values} has {len(values)} values for {axes} axes: give one for each, "
            "or one for all"
        )
    return values


@dataclass(frozen=True)
class Block:
    """A box of cells inside a grid.

    Attributes:
        offset: Its first cell along each axis. A padded block may begin below 0: on a
            periodic axis those cells are the far end of the grid.
        size: Its cells along each axis.
        whole: The cells of the whole grid along each axis.

    Example:
        >>> block = Block(offset=(0, 4), size=(6, 4), whole=(6, 8))
        >>> block.cut
        (False, True)
        >>> block.padded(2)
        Block(offset=(0, 2), size=(6, 8), whole=(6, 8))
        >>> block.padded(2, periodic=False)
        Block(offset=(0, 2), size=(6, 6), whole=(6, 8))
    """

    offset: tuple[int, ...]
    size: tuple[int, ...]
    whole: tuple[int, ...]

    @property
    def cut(self) -> tuple[bool, ...]:
        """For each axis, whether the block is only a part of the grid along it."""
        return tuple(part < all_ for part, all_ in zip(self.size, self.whole, strict=True))

    @property
    def slices(self) -> tuple[slice, ...]:
        """The slices of the block in the whole grid; only for a block without margins."""
        return tuple(
            slice(first, first + count)
            for first, count in zip(self.offset, self.size, strict=True)
        )

    @property
    def indices(self) -> tuple[tuple[int, ...], ...]:
        """For each axis, the indices of its cells in the grid, wrapped at the ends."""
        return tuple(
            tuple(place % all_ for place in range(first, first + count))
            for first, count, all_ in zip(self.offset, self.size, self.whole, strict=True)
        )

    def margins(
        self, margin: int | Sequence[int], periodic: bool | Sequence[bool] = True
    ) -> tuple[tuple[int, int], ...]:
        """Return the width of the margin at both sides of every axis.

        A side has a margin if there is another block beyond it. One number applies to every
        cut axis. A sequence has one number per axis, and may give a margin to an axis that
        is not cut: the block is its own neighbour there, if the axis is periodic.

        Raises:
            ArgumentError: A margin is negative, or there is not one for every axis.

        Example:
            >>> Block((0, 0), (6, 4), (6, 8)).margins(2, periodic=(True, False))
            ((0, 0), (0, 2))
        """
        axes = len(self.size)
        if isinstance(margin, int):
            margin = tuple(margin * cut for cut in self.cut)
        widths = per_axis("margin", margin, axes)
        if any(width < 0 for width in widths):
            raise ArgumentError(f"`margin` {widths} must be 0 or more along every axis")
        wraps = per_axis("periodic", periodic, axes)
        return tuple(
            (
                width * (wrap or first > 0),
                width * (wrap or first + count < all_),
            )
            for width, wrap, first, count, all_ in zip(
                widths, wraps, self.offset, self.size, self.whole, strict=True
            )
        )

    def padded(
        self, margin: int | Sequence[int], periodic: bool | Sequence[bool] = True
    ) -> "Block":
        """Return the block together with its margins.

        Raises:
            ArgumentError: As for `margins`.
        """
        sides = self.margins(margin, periodic)
        return Block(
            tuple(first - low for first, (low, _) in zip(self.offset, sides, strict=True)),
            tuple(n + low + high for n, (low, high) in zip(self.size, sides, strict=True)),
            self.whole,
        )
