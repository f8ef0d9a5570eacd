"""`redistribute`: from the blocks of one layout to those of another, in one all_to_all."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from hotgrid.cluster._block import Block
from hotgrid.cluster._collectives import all_to_all
from hotgrid.cluster._communicator import Communicator
from hotgrid.errors import ArgumentError


def redistribute(
    x: Tensor, communicator: Communicator, before: Sequence[Block], after: Sequence[Block]
) -> Tensor:
    """Exchange cells between ranks so that each owns another block of the same grid.

    Every rank sends each other one the cells that both blocks share, in one `all_to_all`.

    Gradient: cells are sent back, which is `redistribute` with the layouts exchanged.

    Args:
        x: The own cells, `[..., *before[rank].size]`, with the same leading dims on all ranks.
        communicator: The ranks.
        before: The block that each rank owns; together they cover every cell once.
        after: The block that each rank is to own; also each cell once.

    Returns:
        The own cells of the new layout, `[..., *after[rank].size]`.

    Raises:
        ArgumentError: There is not one block for every rank, or `x` is not of its block.

    Example:
        >>> rows, columns = Mesh("2x1").blocks((2, 2)), Mesh("1x2").blocks((2, 2))
        >>> own = lambda c: take(torch.arange(4).reshape(2, 2), rows[c.rank])
        >>> run_ranks(2, lambda c: redistribute(own(c), c, rows, columns).flatten())
        [tensor([0, 2]), tensor([1, 3])]
    """
    if not len(before) == len(after) == communicator.size:
        raise ArgumentError(
            f"{communicator.size} ranks need as many blocks, got {len(before)} and {len(after)}"
        )
    here, there = before[communicator.rank], after[communicator.rank]
    axes = len(here.size)
    if tuple(x.shape[x.ndim - axes :]) != here.size:
        raise ArgumentError(f"`x` must be cells of {here}, got the shape {tuple(x.shape)}")
    if tuple(before) == tuple(after):
        return x
    leading = x.shape[: x.ndim - axes]
    leaving = [x[(..., *_shared(here, block))].reshape(-1) for block in after]
    shared = [_shared(there, block) for block in before]
    shapes = [(*leading, *(part.stop - part.start for part in parts)) for parts in shared]
    counts = [math.prod(shape) for shape in shapes]
    flat = all_to_all(
        torch.cat(leaving),
        communicator,
        split_sizes=[len(part) for part in leaving],
        concat_sizes=counts,
    )
    arrived = [each.view(shape) for each, shape in zip(flat.split(counts), shapes, strict=True)]
    return _assembled(x.new_empty((*leading, *there.size)), arrived, shared)


def _assembled(
    out: Tensor, arrived: Sequence[Tensor], shared: Sequence[tuple[slice, ...]]
) -> Tensor:
    for part, place in zip(arrived, shared, strict=True):
        if part.numel():
            out[(..., *place)] = part
    return out


def _shared(block: Block, other: Block) -> tuple[slice, ...]:
    """The cells that two blocks share, as slices of the first."""
    found = []
    for first, count, begin, cells in zip(
        block.offset, block.size, other.offset, other.size, strict=True
    ):
        low = min(max(begin - first, 0), count)
        high = max(low, min(begin + cells - first, count))
        found.append(slice(low, high))
    return tuple(found)
