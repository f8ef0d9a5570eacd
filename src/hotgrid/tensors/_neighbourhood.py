"""The cells around a cell: one neighbour, all windows, a function over windows."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError

from ._arguments import WholeNumbers, shown
from ._boundary import Boundary, expect_boundary, extend
from ._dims import per_dim


def shift(
    x: Tensor,
    offset: WholeNumbers,
    dims: WholeNumbers | None = None,
    boundary: Boundary = "periodic",
) -> Tensor:
    """Return, for every cell, its neighbour at `offset`.

    THE SIGN: `shift(x, (dy, dx))[y, x] == x[y + dy, x + dx]`. The offset says where
    each cell *looks*; the picture itself moves the other way. `torch.roll` counts
    the movement, so periodic `shift(x, o, d)` is `torch.roll(x, -o, d)`.

    Args:
        x: `[...]`, any dtype.
        offset: Where to look, in cells: one int per dim, or one int for each of `dims`.
        dims: The dims of `offset`. By default the last `len(offset)` dims,
            or the last dim for an int.
        boundary: What a cell sees beyond the end: `"periodic"` the other end,
            `"edge"` the last cell again, a number that number; a complex one for
            a complex `x`.

    Returns:
        A new tensor of the shape and dtype of `x`.

    Raises:
        ArgumentError: Unknown boundary, a number that does not fit the dtype, not
            one whole offset per dim, or `x` is not a tensor.
        DimensionError: A dim does not exist.

    Example:
        >>> shift(torch.tensor([1, 2, 3]), 1)
        tensor([2, 3, 1])
        >>> shift(torch.tensor([1, 2, 3]), 1, boundary=0)
        tensor([2, 3, 0])
    """
    offsets = per_dim(x, "offset", offset, dims)
    beyond = expect_boundary(boundary, x.dtype)
    if beyond == "periodic":
        return torch.roll(x, [-o for o in offsets.values()], list(offsets))
    widths: dict[int, tuple[int, int]] = {}
    for dim, o in offsets.items():
        n = x.shape[dim]
        # Beyond the last cell an edge repeats that cell, so it must survive the cut.
        reach = max(n - 1, 0) if beyond == "edge" else n
        ahead, back = min(max(o, 0), reach), min(max(-o, 0), reach)
        x = x.narrow(dim, ahead, n - ahead - back)
        widths[dim] = (back, ahead)
    return extend(x, widths, beyond)


def windows(
    x: Tensor,
    size: WholeNumbers,
    stride: WholeNumbers = 1,
    dims: WholeNumbers | None = None,
) -> Tensor:
    """Return all windows of `x` as one view, without a copy.

    `windows(x, (a, b))[..., y, z, i, j] == x[..., y + i, z + j]`. Cells overlap in
    memory, so writing into the view writes into `x`. A dim of `n` cells holds
    `max(0, (n + stride - size) // stride)` whole windows.

    Args:
        x: `[...]`, any dtype.
        size: Cells per window: one int per dim, or one int for each of `dims`.
        stride: Cells from one window to the next: one int, or one per dim.
        dims: The dims to cut. By default the last `len(size)` dims, or the last
            dim for an int.

    Returns:
        `[..., *size]`: the dims of `x`, those in `dims` now counting windows, then
        one dim per window dim, in the order of `dims`.

    Raises:
        ArgumentError: A size or stride below 1 or not whole, not one per dim, or
            `x` is not a tensor.
        DimensionError: A dim does not exist.

    Example:
        >>> windows(torch.arange(5), 3)
        tensor([[0, 1, 2],
                [1, 2, 3],
                [2, 3, 4]])
    """
    sizes = per_dim(x, "size", size, dims)
    strides = per_dim(x, "stride", stride, tuple(sizes))
    for argument, numbers in (("size", sizes), ("stride", strides)):
        if min(numbers.values()) < 1:
            raise ArgumentError(
                f"`{argument}` {tuple(numbers.values())} must be 1 or more in every dim"
            )
    for dim, length in sizes.items():
        if length <= x.shape[dim]:
            x = x.unfold(dim, length, strides[dim])
        else:
            none = x.narrow(dim, 0, 0).unsqueeze(-1)
            x = none.expand(*none.shape[:-1], length)
    return x


def map_windows(
    fn: Callable[[Tensor], Tensor],
    x: Tensor,
    size: WholeNumbers,
    stride: WholeNumbers = 1,
    boundary: Boundary | Literal["valid"] = "valid",
) -> Tensor:
    """Compute a value from every window over the last dims, with any function.

    `fn` is called once, on all windows together. It may use any operator, change
    the dtype (bool in, bool out) and mix the dims before the space dims, such
    as channels: `[b, c, h, w]` in, `[b, c_out, h, w]` out. It keeps the rank of `x`:
    a dim more or less is the mark of a window that was not reduced. Add and remove
    dims before or after.

    Args:
        fn: Takes `[..., *counts, *size]`, the view that `windows` gives, and returns
            `[..., *counts]`, of the rank of `x`, where `counts` are the numbers of
            windows.
        x: `[..., *space]`, any dtype.
        size: Cells per window, one int per space dim; an int means the last dim.
        stride: Cells from one window to the next: one int, or one per space dim.
        boundary: `"valid"` takes whole windows only. Otherwise windows are centred
            on the cells `0, stride, 2 * stride, ...` (an even window reaches one
            cell further ahead than back) and see beyond the ends what `shift`
            sees: `"periodic"`, `"edge"` or a number.

    Returns:
        What `fn` returned.

    Raises:
        ArgumentError: `fn` returned something else than one value per window, or
            an argument is wrong, as in `windows` and `shift`.
        DimensionError: `x` has fewer dims than `size`.

    Example:
        >>> life = torch.eye(4, dtype=torch.bool)
        >>> map_windows(lambda w: w.sum((-2, -1)), life, (3, 3), boundary="periodic")[0]
        tensor([3, 2, 2, 2])
    """
    if not callable(fn):
        raise ArgumentError(f"`fn` {shown(fn)} must be a function of a tensor")
    sizes = per_dim(x, "size", size, None)
    beyond = expect_boundary(boundary, x.dtype, ("valid", "periodic", "edge"))
    if beyond != "valid":
        x = extend(x, {dim: ((k - 1) // 2, k // 2) for dim, k in sizes.items()}, beyond)
    seen = windows(x, size, stride)
    values = fn(seen)
    counts = seen.shape[x.ndim - len(sizes) : x.ndim]
    if (
        not isinstance(values, Tensor)
        or values.ndim != x.ndim
        or values.shape[-len(sizes) :] != counts
    ):
        returned = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise ArgumentError(
            f"`fn` must return one value per window: a tensor of rank {x.ndim} whose shape "
            f"ends in {tuple(counts)}. It was given {tuple(seen.shape)} and returned "
            f"{returned}: reduce the last {len(sizes)} dims, which are the window"
        )
    return values
