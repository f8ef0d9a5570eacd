"""`gemv` and `linear`: what callers use."""

import torch.nn.functional as F
from torch import Tensor

from hotgrid.kernels.tune import differentiated, traced, transformed

from ._arguments import check_bias, check_product
from ._registered import multiplied, operator
from ._tensor import converted_product

FEW = 8
"""As many vectors as `linear` still takes for a few; more are a matrix product."""


def gemv(weight: Tensor, x: Tensor, scale: Tensor | None = None) -> Tensor:
    """Return a matrix times one vector or a few: `weight @ x`.

    Sums are taken in at least f32. It works in `torch.compile` without a graph break,
    under `torch.vmap`, and has gradients.

    Against int8 weights the CPU rounds `x` to 14 bits, on a scale of its own for each
    vector: a relative error below 0.001 of the result, beside that of the weights.

    Args:
        weight: `[rows, cols]` of f32, bf16, f16, f64 or int8; rows or columns may lie in one
            piece, and views are fine.
        x: `[cols]`, or `[count, cols]` for several vectors.
        scale: `[rows]`, for int8 weights only: row r of the matrix is
            `scale[r] * weight[r]`.

    Returns:
        `[rows]` or `[count, rows]`, of the type of `x`.

    Raises:
        ArgumentError: A shape, type or device does not fit.

    Example:
        >>> gemv(torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), torch.tensor([1.0, -1.0]))
        tensor([-1., -1., -1.])
    """
    check_product(weight, x, scale)
    vectors = x.reshape(-1, weight.shape[1]) if x.ndim != 2 else x
    y = _product(weight, vectors, scale)
    return y if x.ndim == 2 else y.reshape(*x.shape[:-1], weight.shape[0])


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return `x @ weight.T + bias`, fast for one row of `x` or a few.

    With more than eight rows it is `torch.nn.functional.linear`.

    Args:
        x: `[..., cols]`.
        weight: `[rows, cols]`, of a floating type.
        bias: `[rows]`, or None.

    Returns:
        `[..., rows]`, of the type of `x`.

    Raises:
        ArgumentError: A shape, type or device does not fit.

    Example:
        >>> x, weight = torch.ones(1, 3), torch.eye(2, 3)
        >>> linear(x, weight, torch.tensor([0.5, 0.0]))
        tensor([[1.5000, 1.0000]])
    """
    check_product(weight, x, None)
    check_bias(bias, weight)
    rows, cols = weight.shape
    count = x.numel() // cols if cols else 0
    if not 0 < count <= FEW:
        same = weight.to(x.dtype)
        return F.linear(x, same, None if bias is None else bias.to(x.dtype))
    y = _product(weight, x.reshape(count, cols), None).reshape(*x.shape[:-1], rows)
    return y if bias is None else y + bias.to(y.dtype)


def _product(weight: Tensor, x: Tensor, scale: Tensor | None) -> Tensor:
    tensors = (weight, x) if scale is None else (weight, x, scale)
    if not traced(*tensors) and not any(map(differentiated, tensors)):
        return multiplied(weight, x, scale)
    # torch.func knows the derivatives of torch's operations, not those of ours.
    return (converted_product if transformed() else operator)(weight, x, scale)
