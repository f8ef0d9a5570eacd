"""Which dims a caller means: negative ones resolved, wrong ones refused."""

from collections.abc import Sequence

from torch import Tensor

from hotgrid.errors import ArgumentError, DimensionError


def expect_dim(x: Tensor | int, dim: int) -> int:
    """Return `dim` counted from the front, or say clearly that it does not exist.

    Unlike torch, a tensor of rank 0 has no dim at all here, not even 0 or -1.

    Args:
        x: Tensor of any shape, or a rank.
        dim: Dimension, from `-rank` to `rank - 1`.

    Returns:
        The same dimension as a number from 0 to `rank - 1`.

    Raises:
        DimensionError: There is no such dimension.

    Example:
        >>> expect_dim(torch.zeros(4, 5, 6), -1)
        2
    """
    rank = x.ndim if isinstance(x, Tensor) else x
    if -rank <= dim < rank:
        return dim % rank
    valid = f"use {-rank} to {rank - 1}" if rank else "a tensor of rank 0 has none"
    where = f", of shape {tuple(x.shape)}" if isinstance(x, Tensor) else ""
    raise DimensionError(f"there is no dim `{dim}` in rank {rank}{where}: {valid}")


def expect_dims(x: Tensor, dims: int | Sequence[int]) -> tuple[int, ...]:
    """Return one or more different dims of `x`, each counted from the front."""
    asked = (dims,) if isinstance(dims, int) else tuple(dims)
    found = tuple([expect_dim(x, dim) for dim in asked])
    if not found:
        raise ArgumentError("`dims` is empty: name at least one dim")
    if len(set(found)) < len(found):
        raise ArgumentError(f"`dims` {asked} names the same dim twice in rank {x.ndim}")
    return found


def per_dim(
    x: Tensor, argument: str, value: int | Sequence[int], dims: int | Sequence[int] | None
) -> dict[int, int]:
    """Pair the numbers of an argument with the dims they are for.

    A single int counts for each of `dims`. Without `dims`, the last dims are
    meant: one for an int, as many as there are numbers otherwise.
    """
    if dims is None:
        count = 1 if isinstance(value, int) else len(value)
        if count > x.ndim:
            raise DimensionError(
                f"`{argument}` {value} is for {count} dims, but the tensor of shape "
                f"{tuple(x.shape)} has {x.ndim}"
            )
        dims = range(x.ndim - count, x.ndim)
    axes = expect_dims(x, dims)
    values = [value] * len(axes) if isinstance(value, int) else list(value)
    if len(values) != len(axes):
        raise ArgumentError(
            f"`{argument}` {tuple(values)} has {len(values)} numbers for {len(axes)} dims "
            f"{axes}: give one per dim, or a single int for all"
        )
    return dict(zip(axes, values, strict=True))
