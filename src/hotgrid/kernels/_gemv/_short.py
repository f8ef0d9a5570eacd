"""The winner of a call as a function of what later calls like it are given.

All that follows from types, shapes and strides is decided here, once. Where torch's own
operation has won, nothing is left around it.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ._tensor import LINEAR, MATMUL, VECTOR
from ._triton import WALKING_GPU, walking_like

Product = Callable[..., Tensor]


def short_product(
    function: Product, weight: Tensor, x: Tensor, scale: Tensor | None, *, alone: bool
) -> Product:
    """Return what multiplies like the function of a candidate.

    Args:
        function: Takes a matrix, several vectors, and scales or None.
        weight: `[rows, cols]`, as in the calls to come.
        x: `[count, cols]`, as in the calls to come.
        scale: As in the calls to come.
        alone: Whether these have `[cols]`, a single vector, and get `[rows]`.

    Returns:
        A function of a matrix, vectors, and of scales where there are some.
    """
    ready = None
    if function is WALKING_GPU.function:
        ready = walking_like(weight, x, scale, alone=alone)
    if ready is not None:
        return ready
    if scale is not None:
        one: Product = lambda weight, x, scale: function(weight, x[None], scale)[0]
        return one if alone else function
    return _of_one(function) if alone else _of_several(function)


def _of_one(function: Product) -> Product:
    if function is VECTOR.function:
        return torch.mv
    return lambda weight, x: function(weight, x[None], None)[0]


def _of_several(function: Product) -> Product:
    if function is LINEAR.function:
        return lambda weight, x: F.linear(x, weight)
    if function is MATMUL.function:
        return lambda weight, x: torch.mm(x, weight.T)
    return lambda weight, x: function(weight, x, None)


def short_layer(function: Product, weight: Tensor, x: Tensor, bias: Tensor | None) -> Product:
    """Return the same as a function of `x`, a matrix, and a bias where there is one.

    Args:
        function: Takes a matrix, several vectors, and None.
        weight: `[rows, cols]`, as in the calls to come.
        x: `[..., cols]`, as in the calls to come.
        bias: `[rows]`, as in the calls to come.
    """
    if function is LINEAR.function and (bias is None or bias.dtype == x.dtype):
        return F.linear
    shape = x.shape
    vectors = x if x.ndim == 2 else x.reshape(-1, shape[-1])
    product = short_product(function, weight, vectors, None, alone=False)
    if x.ndim == 2:
        run: Any = lambda x, weight: product(weight, x)
    else:
        flat, whole = vectors.shape, (*shape[:-1], weight.shape[0])
        run = lambda x, weight: product(weight, x.reshape(flat)).reshape(whole)
    if bias is None:
        return run
    if bias.dtype == x.dtype:
        return lambda x, weight, bias: run(x, weight) + bias
    return lambda x, weight, bias: (y := run(x, weight)) + bias.to(y.dtype)


def short_biased(function: Product, weight: Tensor, x: Tensor) -> Product:
    """Return the same for `x` of 16 bits with a bias, which is added before rounding.

    Args:
        function: Takes a matrix, several vectors in f32, and None.
        weight: `[rows, cols]`, as in the calls to come.
        x: `[..., cols]`, as in the calls to come.
    """
    flat, kind = (x.numel() // x.shape[-1], x.shape[-1]), x.dtype
    whole = (*x.shape[:-1], weight.shape[0])
    product = short_product(function, weight, x.reshape(flat).float(), None, alone=False)

    def run(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        y = product(weight, x.reshape(flat).float()) + bias
        return y.to(kind).reshape(whole)

    return run
