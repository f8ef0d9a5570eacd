"""A window on a grid: the box of cells that one rank wants of an initial state or an input.

`initial` and `static` get the size of the grid. Where a grid is cut over ranks and the model
is `windowed`, that size is a `GridWindow`. It is the same tuple of numbers, so that formulas
hold; `window_shape`, `places` and `drawn` give shape, coordinates and random numbers for it.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from hotgrid.cluster import Block, take

# Numbers of the whole grid that are drawn at once.
_AT_ONCE = 1 << 20


class GridWindow(tuple[int, ...]):
    """The size of a grid of which only a box is wanted.

    Attributes:
        block: The box; beyond the ends the grid repeats.

    Example:
        >>> from hotgrid.cluster import Block
        >>> size = GridWindow(Block(offset=(4, 0), size=(2, 6), whole=(8, 6)))
        >>> size[0], window_shape(size)
        (8, (2, 6))
        >>> size == (8, 6)
        False
    """

    block: Block

    def __new__(cls, block: Block) -> "GridWindow":
        made = super().__new__(cls, block.whole)
        made.block = block
        return made

    # What is kept by size must not be mixed up with that of the whole grid.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, GridWindow) and self.block == other.block

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.block)

    def wider(self, by: int) -> "GridWindow":
        """The window extended by a number of cells at every side."""
        first = tuple(n - by for n in self.block.offset)
        return GridWindow(
            Block(first, tuple(n + 2 * by for n in self.block.size), self.block.whole)
        )


def window_shape(size: Sequence[int]) -> tuple[int, ...]:
    """The shape to make: that of the box, or of the whole grid.

    Example:
        >>> window_shape((8, 6))
        (8, 6)
    """
    return size.block.size if isinstance(size, GridWindow) else tuple(size)


def places(size: Sequence[int], dtype: torch.dtype | None = None) -> list[Tensor]:
    """For each axis the places of cells in the grid, as `torch.arange` gives them.

    Example:
        >>> from hotgrid.cluster import Block
        >>> places((2, 3))
        [tensor([0, 1]), tensor([0, 1, 2])]
        >>> places(GridWindow(Block(offset=(6, -1), size=(2, 3), whole=(8, 6))))
        [tensor([6, 7]), tensor([5, 0, 1])]
    """
    if not isinstance(size, GridWindow):
        return [torch.arange(n, dtype=dtype) for n in size]
    block = size.block
    return [
        (torch.arange(first, first + count) % n).to(dtype or torch.int64)
        for first, count, n in zip(block.offset, block.size, block.whole, strict=True)
    ]


def drawn(size: Sequence[int], draw: Callable[[tuple[int, ...]], Tensor]) -> Tensor:
    """Random numbers `[*space]`: of a window those that the whole grid has there.

    A generator cannot skip numbers, so all of them are drawn, some rows at a time: what `draw`
    computes from them takes no more memory than its result.

    Arguments:
        size: The grid.
        draw: From a shape to numbers that are drawn one after the other, as by `torch.rand`
            and `torch.randint`, not by `torch.randn`.

    Example:
        >>> from hotgrid.cluster import Block, take
        >>> def draw(shape): return torch.rand(shape, generator=generator)
        >>> generator = torch.Generator().manual_seed(0)
        >>> whole = drawn((8, 6), draw)
        >>> generator = torch.Generator().manual_seed(0)
        >>> block = Block(offset=(2, 1), size=(3, 4), whole=(8, 6))
        >>> torch.equal(drawn(GridWindow(block), draw), take(whole, block))
        True
    """
    rows, *others = places(size)
    at_once = max(1, _AT_ONCE // max(1, math.prod(size[1:])))
    found = draw((0, *size[1:])).new_empty(window_shape(size))
    for first in range(0, size[0], at_once):
        some = draw((min(at_once, size[0] - first), *size[1:]))
        if not isinstance(size, GridWindow):
            found[first : first + len(some)] = some
            continue
        here = ((rows >= first) & (rows < first + len(some))).nonzero().flatten()
        for axis, cells in enumerate((rows[here] - first, *others)):
            some = some.index_select(axis, cells)
        found[here] = some
    return found


def in_window(x: Tensor, size: Sequence[int]) -> Tensor:
    """The cells of a window, from `[..., *space]` of the whole grid or already of the window.

    Example:
        >>> from hotgrid.cluster import Block
        >>> size = GridWindow(Block(offset=(4,), size=(2,), whole=(8,)))
        >>> in_window(torch.arange(8), size), in_window(torch.tensor([4, 5]), size)
        (tensor([4, 5]), tensor([4, 5]))
    """
    if (
        isinstance(size, GridWindow)
        and tuple(x.shape[x.ndim - len(size) :]) == size.block.whole
    ):
        return take(x, size.block)
    return x


def window_on(block: Block, *, windowed: bool) -> tuple[int, ...]:
    """The size to call a model with for a box: a `GridWindow`, or the whole size if needed.

    A box that goes around the whole grid could not be told from the grid by its shape.
    """
    return GridWindow(block) if windowed and block.size != block.whole else block.whole
