"""`shard_of` and `rank_seed`: which data a rank sees, and its own random numbers."""

import hashlib

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError

from ._block import shares


def shard_of(
    items: int,
    rank: int,
    size: int,
    *,
    epoch: int = 0,
    seed: int = 0,
    shuffle: bool = True,
    even: bool = True,
) -> Tensor:
    """Return which items of a data set a rank sees in an epoch, in which order.

    The items are shuffled once for all ranks and dealt out one by one. So the order in
    which ranks together see them does not depend on how many ranks there are.

    Args:
        items: How many items there are.
        rank: Which rank.
        size: How many ranks.
        epoch: Another epoch, another order.
        seed: Another seed, another order.
        shuffle: False deals them out in order.
        even: Give all ranks equally many, by repeating the first few: ranks that train
            together must make equally many steps. False sees every item exactly once.

    Returns:
        Their places, int64, `[n]`.

    Raises:
        ArgumentError: There is no such rank, or no item.

    Example:
        >>> shard_of(5, rank=0, size=2, shuffle=False)
        tensor([0, 2, 4])
        >>> shard_of(5, rank=1, size=2, shuffle=False)
        tensor([1, 3, 0])
        >>> shard_of(5, rank=1, size=2, shuffle=False, even=False)
        tensor([1, 3])
    """
    if not 0 <= rank < size:
        raise ArgumentError(f"`rank` {rank} is not one of {size} ranks, 0 to {size - 1}")
    if items < 1:
        raise ArgumentError(f"`items` {items}: there is nothing to share")
    if shuffle:
        generator = torch.Generator("cpu").manual_seed(_mixed(seed, epoch))
        order = torch.randperm(items, generator=generator, device="cpu")
    else:
        order = torch.arange(items, device="cpu")
    count = shares(items, size)[0 if even else rank]
    return order[(torch.arange(count, device="cpu") * size + rank) % items]


def rank_seed(seed: int, rank: int) -> int:
    """Return a different seed for each rank, the same in every run.

    Example:
        >>> rank_seed(0, 1) == rank_seed(0, 1), rank_seed(0, 1) == rank_seed(1, 0)
        (True, False)
        >>> generator = torch.Generator().manual_seed(rank_seed(0, 1))
    """
    return _mixed(seed, rank)


def _mixed(*numbers: int) -> int:
    """Mix numbers into 63 bits; the same on every machine."""
    text = ",".join(map(str, numbers)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1
