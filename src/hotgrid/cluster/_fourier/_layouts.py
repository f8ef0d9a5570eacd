"""The layouts that a split grid goes through in a Fourier transform. Plain integers."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from hotgrid.cluster._block import Block
from hotgrid.cluster._mesh import Mesh
from hotgrid.errors import ArgumentError


@dataclass(frozen=True)
class Stage:
    """A layout in which some axes are whole, and are transformed.

    Attributes:
        parts: Ranks along each axis.
        axes: The axes that are transformed, all at once.

    Example:
        >>> stages((8, 8), 2)
        (Stage(parts=(2, 1), axes=(1,)), Stage(parts=(1, 2), axes=(0,)))
    """

    parts: tuple[int, ...]
    axes: tuple[int, ...]

    def blocks(self, size: Sequence[int]) -> tuple[Block, ...]:
        """The part of a grid that every rank owns in this layout."""
        return _blocks(self.parts, tuple(size))


# Asked for at every transform, and with thousands of ranks a long list.
@lru_cache(maxsize=64)
def _blocks(parts: tuple[int, ...], size: tuple[int, ...]) -> tuple[Block, ...]:
    return Mesh(parts).blocks(size)


def stages(modes: Sequence[int], ranks: int) -> tuple[Stage, ...]:
    """The layouts of a forward transform, first to last; a backward one has them reversed.

    Slabs, which need one exchange, where there are enough rows; in three dims else pencils,
    which need two.

    Args:
        modes: The numbers of modes along each axis.
        ranks: How many ranks share them.

    Raises:
        ArgumentError: There are more ranks than rows or pencils.
    """
    axes = len(modes)
    everything = tuple(range(axes))
    if ranks == 1 or axes == 1:
        return (Stage((1,) * axes, everything),)
    if ranks <= min(modes[:2]):
        whole = (1,) * (axes - 2)
        return (
            Stage((ranks, 1, *whole), everything[1:]),
            Stage((1, ranks, *whole), (0,)),
        )
    for a, b in _pairs(ranks) if axes == 3 else ():
        if a <= min(modes[0], modes[1]) and b <= min(modes[1], modes[2]):
            return Stage((a, b, 1), (2,)), Stage((a, 1, b), (1,)), Stage((1, a, b), (0,))
    raise ArgumentError(
        f"{ranks} ranks are too many for a Fourier transform with modes "
        f"{'x'.join(map(str, modes))}: use at most {min(modes[:2])}"
    )


def _pairs(count: int) -> Iterator[tuple[int, int]]:
    """Two factors of a count, the most equal first."""
    for a in range(math.isqrt(count), 0, -1):
        if count % a == 0:
            yield a, count // a
            yield count // a, a
