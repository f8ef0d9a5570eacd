"""The arguments of `convolve` as callers give them, checked."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, near
from hotgrid.kernels.tune import expect_array

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
"""The types of numbers that can be convolved."""

BOUNDARIES = ("periodic", "zero")
"""The boundaries: what a cell sees beyond the edge."""


def check_weights(x: Any, kernel: Any, boundary: Any) -> None:
    """Raise unless `kernel` can be laid over every cell of `x`."""
    for name, value in (("x", x), ("kernel", kernel)):
        if callable(value) and not isinstance(value, Tensor):
            raise ArgumentError(
                f"`{name}` must be a tensor, got {type(value).__name__}: "
                "a function of windows is for `hotgrid.tensors.map_windows`"
            )
        expect_array(name, value)
    if x.dtype not in FLOATS:
        known = ", ".join(str(each).removeprefix("torch.") for each in FLOATS)
        raise ArgumentError(f"`x` is {x.dtype}; expected {known}: use `x.float()`")
    if kernel.dtype != x.dtype:
        raise ArgumentError(
            f"`kernel` is {kernel.dtype} and `x` is {x.dtype}: use `kernel.to(x.dtype)`"
        )
    if kernel.device != x.device:
        raise ArgumentError(f"`kernel` is on {kernel.device} and `x` on {x.device}")
    if not 1 <= kernel.ndim <= 3 or 0 in kernel.shape:
        raise ArgumentError(
            f"`kernel` must have 1, 2 or 3 dims and at least one weight, "
            f"got shape {tuple(kernel.shape)}"
        )
    if x.ndim < kernel.ndim:
        raise ArgumentError(
            f"`x` of shape {tuple(x.shape)} must have the {kernel.ndim} dims of `kernel` of "
            f"shape {tuple(kernel.shape)} as its last ones"
        )
    if boundary not in BOUNDARIES:
        raise ArgumentError(
            f"`boundary` is {boundary!r}; expected 'periodic' or 'zero'"
            f"{near(boundary, BOUNDARIES)}"
        )


def check_exact(exact: Any) -> None:
    """Raise unless `exact` is True or False."""
    if type(exact) is not bool:
        raise ArgumentError(f"`exact` must be True or False, got {exact!r}")


def checked_grids(
    x: Any, kernel: Any, before: Sequence[int], periodic: bool
) -> tuple[Tensor, Tensor, tuple[int, ...], bool]:
    """Raise unless `kernel` can be laid over every cell of `x` `[count, *space]` as it is."""
    check_weights(x, kernel, "periodic" if periodic else "zero")
    space, sizes = tuple(x.shape[1:]), tuple(kernel.shape)
    if x.ndim != kernel.ndim + 1:
        raise ArgumentError(
            f"`x` must be `[count, *space]` with the {kernel.ndim} dims of `kernel` as space, "
            f"got shape {tuple(x.shape)}"
        )
    within = len(before) == len(sizes) and all(
        0 <= b < k for b, k in zip(before, sizes, strict=True)
    )
    if not within:
        raise ArgumentError(
            f"`before` is {tuple(before)}; expected for each dim of `kernel` of shape {sizes} "
            "how many cells it reaches back, 0 or more and less than its size"
        )
    if periodic and x.numel() and any(k > n for k, n in zip(sizes, space, strict=True)):
        raise ArgumentError(
            f"`kernel` of shape {sizes} is larger than the torus of shape {space}: use "
            "`hotgrid.kernels.convolve`, which folds it"
        )
    return x, kernel, tuple(before), periodic
