"""`gemv` and `linear`: what callers use."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.cuda import is_current_stream_capturing

from hotgrid.errors import ArgumentError
from hotgrid.kernels.tune import autocast_type, differentiated, traced, transformed, written

from ._arguments import check_bias, check_product
from ._op import tuned_gemv
from ._registered import multiplied, operator
from ._tensor import TORCHS, converted_product

FEW = 8
"""The most vectors that `linear` treats as a few; more are a matrix product."""
_HALVES = (torch.bfloat16, torch.float16)


def gemv(
    weight: Tensor, x: Tensor, scale: Tensor | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return a matrix times one vector or a few: `weight @ x`.

    Sums are taken in at least f32. It works in `torch.compile` without a graph break,
    under `torch.vmap`, and has gradients. Under `torch.autocast` weight and vector first
    take its type, as in torch's own products.

    Against int8 weights the CPU rounds `x` to 14 bits of its largest element, for each
    vector: a relative error below 0.001 where the elements are of one order, and more where
    one of them is a thousand times as large as the others. The largest must be between 1e-33
    and 1e33 in size; else results may be 0, infinite or NaN. Subnormal bf16 numbers may be
    taken for zero.

    Args:
        weight: `[rows, cols]` of f32, bf16, f16, f64 or int8; rows or columns may lie in one
            piece, and views are fine.
        x: `[cols]`, or `[count, cols]` for several vectors.
        scale: `[rows]`, for int8 weights only: row r of the matrix is
            `scale[r] * weight[r]`.
        out: Where the result goes, of its shape and type, in memory of its own.

    Returns:
        `[rows]` or `[count, rows]`, of the type of `x`.

    Raises:
        ArgumentError: A shape, type or device does not match.

    Example:
        >>> gemv(torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), torch.tensor([1.0, -1.0]))
        tensor([-1., -1., -1.])
    """
    tensors = (weight, x) if scale is None else (weight, x, scale)
    run = None if out is not None else tuned_gemv.fast("gemv", *tensors)
    if run is not None:
        return run(*tensors)
    check_product(weight, x, scale)
    if out is not None:
        inputs: dict[str, Tensor] = dict(zip(("weight", "x", "scale"), tensors, strict=False))
        written({"out": gemv(weight, x, scale)}, out, inputs)
        return out
    lower = autocast_type(x)
    if lower is not None:
        with torch.autocast(x.device.type, enabled=False):
            return gemv(_lowered(weight, lower), x.to(lower), scale)
    y = _of_vectors(_product, weight, x, scale)
    tuned_gemv.keep_fast("gemv", tensors, (weight, _rows(x), scale), _of_vectors)
    return y


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return `x @ weight.T + bias`, fast for one row of `x` or a few.

    With more than eight rows it is `torch.nn.functional.linear`, and under `torch.autocast`
    it takes the same type. A result of 16 bits is rounded once, after the bias was added. A
    weight of another type than `x` is never rounded to 16 bits: the product is then in f32 or
    wider.

    Args:
        x: `[..., cols]`.
        weight: `[rows, cols]`, of a floating type.
        bias: `[rows]`, or None.

    Returns:
        `[..., rows]`, of the type of `x`.

    Raises:
        ArgumentError: A shape, type or device does not match.

    Example:
        >>> x, weight = torch.ones(1, 3), torch.eye(2, 3)
        >>> linear(x, weight, torch.tensor([0.5, 0.0]))
        tensor([[1.5000, 1.0000]])
    """
    tensors = (weight, x) if bias is None else (weight, x, bias)
    run = tuned_gemv.fast("linear", *tensors)
    if run is not None:
        return run(*tensors)
    if isinstance(weight, Tensor) and weight.dtype == torch.int8:
        raise ArgumentError("`weight` is int8, which has scales: use `gemv(weight, x, scale)`")
    check_product(weight, x, None)
    check_bias(bias, weight)
    lower = autocast_type(x)
    if lower is not None:
        with torch.autocast(x.device.type, enabled=False):
            return linear(x.to(lower), _lowered(weight, lower), bias)
    cols = weight.shape[1]
    if not 0 < (x.numel() // cols if cols else 0) <= FEW:
        alike = weight.dtype == x.dtype
        wide = x.dtype if alike else torch.promote_types(torch.float32, x.dtype)
        added = None if bias is None else bias.to(wide)
        return F.linear(x.to(wide), weight.to(wide), added).to(x.dtype)
    vectors, compute = _rows(x), _layer
    if bias is not None and _torch_wins(vectors, weight, bias):
        compute = _torch_layer
    elif bias is not None and x.dtype in _HALVES:
        vectors = vectors.float()
    y = compute(_product, *tensors)
    tuned_gemv.keep_fast("linear", tensors, (weight, vectors, None), compute)
    return y


def _rows(x: Tensor) -> Tensor:
    """Return `x` `[..., cols]` as `[count, cols]`."""
    if x.ndim == 2:
        return x
    return x.unsqueeze(0) if x.ndim == 1 else x.reshape(x.shape[:-1].numel(), x.shape[-1])


def _of_vectors(
    multiply: Callable[..., Tensor], weight: Tensor, x: Tensor, scale: Tensor | None = None
) -> Tensor:
    """Return a matrix times `x` `[..., cols]`, by a function that takes `[count, cols]`."""
    y = multiply(weight, _rows(x), scale)
    if x.ndim == 2:
        return y
    return y.squeeze(0) if x.ndim == 1 else y.reshape(*x.shape[:-1], weight.shape[0])


def _layer(
    multiply: Callable[..., Tensor], weight: Tensor, x: Tensor, bias: Tensor | None = None
) -> Tensor:
    """Return `x @ weight.T + bias`; sums of 16 bits are rounded after the bias was added."""
    if bias is not None and x.dtype in _HALVES:
        return (_of_vectors(multiply, weight, x.float()) + bias).to(x.dtype)
    y = _of_vectors(multiply, weight, x)
    return y if bias is None else y + bias.to(y.dtype)


def _torch_layer(multiply: object, weight: Tensor, x: Tensor, bias: Tensor) -> Tensor:
    """Return the result of torch's own layer."""
    return F.linear(x, weight, bias)


def _torch_wins(vectors: Tensor, weight: Tensor, bias: Tensor) -> bool:
    """Whether torch's product is the fastest; torch adds the bias in the same call."""
    tensors = (weight, vectors, bias)
    if not weight.dtype == vectors.dtype == bias.dtype or traced(*tensors):
        return False
    if any(map(differentiated, tensors)) or (weight.is_cuda and is_current_stream_capturing()):
        return False
    if tuned_gemv.function_of(weight, vectors, None) is None:
        tuned_gemv(weight, vectors, None)
    return tuned_gemv.function_of(weight, vectors, None) in TORCHS


def _lowered(weight: Tensor, dtype: torch.dtype) -> Tensor:
    return weight if weight.dtype in (torch.int8, torch.float64) else weight.to(dtype)


def _product(weight: Tensor, x: Tensor, scale: Tensor | None) -> Tensor:
    tensors = (weight, x) if scale is None else (weight, x, scale)
    if not traced(*tensors) and not any(map(differentiated, tensors)):
        return multiplied(weight, x, scale)
    # torch.func knows the derivatives of torch's operations, not those of ours.
    return (converted_product if transformed() else operator)(weight, x, scale)
