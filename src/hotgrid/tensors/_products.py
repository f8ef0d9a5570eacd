"""Products along chosen dims."""

from typing import SupportsIndex

from torch import Tensor

from hotgrid.errors import ArgumentError

from ._arguments import WholeNumbers, expect_tensor
from ._dims import expect_dim, expect_dims


def outer_dim(x: Tensor, y: Tensor, dim: SupportsIndex = -1) -> Tensor:
    """Return the outer product of `x` and `y` along one dim, batched over the others.

    With `dim=-1`: `outer_dim(x, y)[..., i, j] == x[..., i] * y[..., j]`.

    Args:
        x: `[..., n, ...]`, with `n` at `dim`.
        y: `[..., m, ...]`, of the same rank; the other dims are equal or 1.
        dim: The dim to multiply out.

    Returns:
        `[..., n, m, ...]`: `dim` of `x`, then `dim` of `y`.

    Raises:
        ArgumentError: The ranks differ or the other dims do not match.
        DimensionError: There is no such `dim`.

    Example:
        >>> outer_dim(torch.tensor([[1, 2]]), torch.tensor([[3, 4]]))
        tensor([[[3, 4],
                 [6, 8]]])
    """
    dim = expect_dim(expect_tensor("`x`", x), dim)
    expect_tensor("`y`", y)
    fits = x.ndim == y.ndim and all(
        a == b or 1 in (a, b) or place == dim
        for place, (a, b) in enumerate(zip(x.shape, y.shape, strict=True))
    )
    if not fits:
        raise ArgumentError(
            f"`x` {tuple(x.shape)} and `y` {tuple(y.shape)} must have the same rank, and "
            f"dims that are equal or 1 everywhere but at dim {dim}"
        )
    return x.unsqueeze(dim + 1) * y.unsqueeze(dim)


def prod_dims(x: Tensor, dims: WholeNumbers, keepdim: bool = False) -> Tensor:
    """Return the product over several dims; `torch.prod` takes one.

    Ints and bools give int64, as with `torch.prod`. The gradient is right where
    cells are zero, too.

    Args:
        x: `[...]`, any dtype.
        dims: One or more dims.
        keepdim: Keep the reduced dims with size 1.

    Returns:
        `x` without `dims`, or with size 1 there.

    Raises:
        ArgumentError: `dims` is empty or names a dim twice.
        DimensionError: A dim does not exist.

    Example:
        >>> prod_dims(torch.full((2, 3, 4), 2), (0, 2))
        tensor([256, 256, 256])
    """
    for dim in sorted(expect_dims(x, dims), reverse=True):
        x = x.prod(dim, keepdim=keepdim)
    return x
