"""Which dims a caller means: negative ones resolved, wrong ones refused."""

from typing import SupportsIndex

from torch import Tensor

from hotgrid.errors import ArgumentError, DimensionError

from ._arguments import WholeNumbers, expect_tensor, shown, whole_number, whole_numbers


def expect_dim(x: Tensor | SupportsIndex, dim: SupportsIndex) -> int:
    """Return `dim` counted from the front, or raise a clear error if it does not exist.

    Unlike torch, a tensor of rank 0 has no dim at all here, not even 0 or -1.

    Args:
        x: Tensor of any shape, or a rank.
        dim: Dimension, from `-rank` to `rank - 1`.

    Returns:
        The same dimension as a number from 0 to `rank - 1`.

    Raises:
        ArgumentError: `x` is neither, or `dim` is not an int.
        DimensionError: There is no such dimension.

    Example:
        >>> expect_dim(torch.zeros(4, 5, 6), -1)
        2
    """
    rank = x.ndim if isinstance(x, Tensor) else _expect_rank(x)
    dim = whole_number("dim", dim)
    if -rank <= dim < rank:
        return dim % rank
    valid = f"use {-rank} to {rank - 1}" if rank else "a tensor of rank 0 has none"
    where = f", of shape {tuple(x.shape)}" if isinstance(x, Tensor) else ""
    raise DimensionError(f"there is no dim `{dim}` in rank {rank}{where}: {valid}")


def _expect_rank(x: object) -> int:
    try:
        rank = whole_number("x", x)
    except ArgumentError:
        rank = -1
    if rank < 0:
        raise ArgumentError(
            f"`x` must be a tensor or a rank of 0 or more, got {shown(x)} "
            f"({type(x).__name__}): use `torch.as_tensor(...)` for an array"
        )
    return rank


def expect_dims(x: Tensor, dims: WholeNumbers) -> tuple[int, ...]:
    """Return one or more different dims of `x`, each counted from the front."""
    expect_tensor("`x`", x)
    numbers = whole_numbers("dims", dims)
    asked = numbers if isinstance(numbers, tuple) else (numbers,)
    found = tuple([expect_dim(x, dim) for dim in asked])
    if not found:
        raise ArgumentError("`dims` is empty: name at least one dim")
    if len(set(found)) < len(found):
        raise ArgumentError(f"`dims` {asked} names the same dim twice in rank {x.ndim}")
    return found


def per_dim(
    x: Tensor, argument: str, value: WholeNumbers, dims: WholeNumbers | None
) -> dict[int, int]:
    """Pair the numbers of an argument with the dims they are for.

    A single int counts for each of `dims`. Without `dims`, the last dims are
    meant: one for an int, as many as there are numbers otherwise.
    """
    expect_tensor("`x`", x)
    numbers = whole_numbers(argument, value)
    if dims is None:
        count = len(numbers) if isinstance(numbers, tuple) else 1
        if count > x.ndim:
            raise DimensionError(
                f"`{argument}` {numbers} is for {count} dims, but the tensor of shape "
                f"{tuple(x.shape)} has {x.ndim}"
            )
        dims = range(x.ndim - count, x.ndim)
    axes = expect_dims(x, dims)
    values = numbers if isinstance(numbers, tuple) else (numbers,) * len(axes)
    if len(values) != len(axes):
        raise ArgumentError(
            f"`{argument}` {values} has {len(values)} numbers for {len(axes)} dims "
            f"{axes}: give one per dim, or a single int for all"
        )
    return dict(zip(axes, values, strict=True))
