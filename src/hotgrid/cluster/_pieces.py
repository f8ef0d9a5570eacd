"""`take` and `join`: cut a whole tensor into blocks, and put blocks together."""

from collections.abc import Sequence

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError

from ._block import Block


def take(x: Tensor, block: Block) -> Tensor:
    """Return the cells of a block, as a tensor of its own.

    Args:
        x: The whole, `[..., *space]`, of the size that the block is a part of.
        block: Which cells; a padded block is wrapped at the ends.

    Returns:
        Those cells, `[..., *block.size]`, contiguous.

    Raises:
        ArgumentError: The last axes of `x` are not of the size of the whole grid.

    Example:
        >>> take(torch.arange(6), Mesh("2").block(0, (6,)).padded(1))
        tensor([5, 0, 1, 2, 3])
    """
    axes = len(block.whole)
    if tuple(x.shape[x.ndim - axes :]) != block.whole:
        raise ArgumentError(
            f"the block is cut out of a grid of {block.whole}, got {tuple(x.shape)}"
        )
    for axis, places in enumerate(block.indices, start=x.ndim - axes):
        first, count = places[0], len(places)
        if places[-1] - first == count - 1:
            x = x.narrow(axis, first, count)
        else:
            x = x.index_select(axis, torch.tensor(places, device=x.device))
    return x.clone(memory_format=torch.contiguous_format)


def join(pieces: Sequence[Tensor], blocks: Sequence[Block]) -> Tensor:
    """Put the owned cells of all ranks together.

    Args:
        pieces: One for every block, `[..., *block.size]`, without margins.
        blocks: The block of each of them; `Mesh.blocks` returns them.

    Returns:
        The whole, `[..., *space]`.

    Raises:
        ArgumentError: There is not one piece for every block, or a piece has another size.

    Example:
        >>> blocks = Mesh("3").blocks((7,))
        >>> join([take(torch.arange(7), block) for block in blocks], blocks)
        tensor([0, 1, 2, 3, 4, 5, 6])
    """
    if len(pieces) != len(blocks) or not blocks:
        raise ArgumentError(f"cannot join {len(pieces)} pieces for {len(blocks)} blocks")
    axes = len(blocks[0].whole)
    first = pieces[0]
    whole = first.new_empty((*first.shape[: first.ndim - axes], *blocks[0].whole))
    for piece, block in zip(pieces, blocks, strict=True):
        if tuple(piece.shape[piece.ndim - axes :]) != block.size:
            raise ArgumentError(
                f"a piece of {tuple(piece.shape)} does not fit the block of {block.size} "
                f"at {block.offset}: give owned cells only, without margins"
            )
        whole[(..., *block.slices)] = piece
    return whole
