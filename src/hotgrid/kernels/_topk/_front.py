"""`topk` and `argtopk`: what callers use."""

from collections.abc import Callable
from typing import Any, SupportsIndex

from torch import Tensor

from hotgrid.kernels.tune import differentiated, traced, written

from ._arguments import checked_arguments
from ._op import tuned_topk
from ._registered import operator, selected


def topk(
    x: Tensor,
    k: SupportsIndex,
    dim: SupportsIndex = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    out: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the k largest elements along a dimension, and where they are.

    Of equal elements those with the lowest indices are taken, and they come in the order
    of their indices; `torch.topk` takes any of them. NaN is larger than every number, as
    in torch. Gradients go to the elements that were taken. It works in `torch.compile`
    without a graph break, and under `torch.vmap`.

    Args:
        x: Tensor of any shape `[..., n, ...]` and any type that has an order; it need not
            be contiguous.
        k: How many, 0 to n.
        dim: The dimension of size n.
        largest: The largest ones, or else the smallest.
        sorted: From the most extreme one on; without it, the same elements in any order.
        out: Where values and indices go, of the same shapes and types as the result and in
            memory that neither shares with `x`.

    Returns:
        Values and int64 indices, both of shape `[..., k, ...]`.

    Raises:
        ArgumentError: `x` is not a tensor or is complex, `k` is out of range, a flag is not a
            bool, or `out` does not fit.
        DimensionError: There is no such `dim`; a tensor of rank 0 has none.
        KernelError: With `kernels.check_mode`, a kernel did something wrong.

    Example:
        >>> values, indices = topk(torch.tensor([[1, 7, 7], [5, 2, 9]]), 2)
        >>> values.tolist(), indices.tolist()
        ([[7, 7], [9, 5]], [[1, 2], [2, 0]])
    """
    name = None
    # Equal numbers of other types, such as True, are other arguments.
    if out is None and type(k) is type(dim) is int and type(largest) is type(sorted) is bool:
        name = (k, dim, largest, sorted)
        run = tuned_topk.fast(name, x)
        if run is not None:
            return run(x)
    x, k, dim, largest, sorted = checked_arguments(x, k, dim, largest, sorted)
    if out is not None:
        values, indices = topk(x, k, dim, largest, sorted)
        written({"out[0]": values, "out[1]": indices}, out, {"x": x})
        return out
    settings, wanted = (k, dim, largest, sorted), differentiated(x)

    def compute(select: Callable[..., Any], x: Tensor) -> tuple[Tensor, Tensor]:
        if not wanted:
            return select(x, *settings)
        # torch knows every derivative of gather, and its autograd costs less than ours.
        indices = select(x.detach(), *settings)[1]
        return x.gather(dim, indices), indices

    found = compute(operator if traced(x) else selected, x)
    if name is not None:
        tuned_topk.keep_fast(name, (x,), (x, *settings), compute, gradients=wanted)
    return found


def argtopk(
    x: Tensor,
    k: SupportsIndex,
    dim: SupportsIndex = -1,
    largest: bool = True,
    sorted: bool = True,
) -> Tensor:
    """Return where the k largest elements along a dimension are.

    See `topk`, which says what is taken of equal elements and of NaN.

    Args:
        x: Tensor of any shape `[..., n, ...]`.
        k: How many, 0 to n.
        dim: The dimension of size n.
        largest: The largest ones, or else the smallest.
        sorted: From the most extreme one on; without it in any order.

    Returns:
        int64 indices of shape `[..., k, ...]`.

    Raises:
        ArgumentError: As `topk`.
        DimensionError: As `topk`.

    Example:
        >>> argtopk(torch.tensor([1.0, 3.0, 2.0, 3.0]), 3).tolist()
        [1, 3, 2]
    """
    return topk(x.detach() if isinstance(x, Tensor) else x, k, dim, largest, sorted)[1]
