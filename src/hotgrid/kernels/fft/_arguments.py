"""The arguments of Fourier transforms as callers give them, checked."""

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, near
from hotgrid.kernels.tune import expect_array
from hotgrid.tensors import expect_dim

Lengths = SupportsIndex | Sequence[SupportsIndex]
"""One whole number, or one for each dim."""

LAST_TWO = (-2, -1)
"""The dims of images where nothing else is said."""

_NORMS = ("backward", "ortho", "forward")
REAL = (torch.float32, torch.float64)
"""The types of images that are tuned."""
COMPLEX = (torch.complex64, torch.complex128)
"""The types of their spectra."""


def check_numbers(x: Any, *, real: bool = False) -> None:
    """Raise unless `x` is a dense tensor of a type that torch transforms."""
    expect_array("x", x)
    if real and x.is_complex():
        raise ArgumentError(
            f"`x` is {x.dtype}; a transform of real numbers takes real ones: "
            "use the name without the `r`, or `x.real`"
        )
    half = x.dtype is torch.float16 and x.device.type != "cuda"
    if half or x.dtype is torch.bfloat16:
        where = " outside of a GPU" if half else ""
        raise ArgumentError(
            f"`x` is {x.dtype}, which torch does not transform{where}: use `x.float()`"
        )


def checked_norm(norm: Any) -> str:
    """Return the name of a scaling; None is `backward`, as in torch."""
    if norm is None:
        return "backward"
    if norm in _NORMS:
        return norm
    raise ArgumentError(
        f"`norm` is {norm!r}; expected {', '.join(map(repr, _NORMS))}{near(norm, _NORMS)}"
    )


def check_images(x: Any, norm: str) -> None:
    """Raise unless `x` is `[count, height, width]`, images that are tuned."""
    expect_array("x", x)
    if x.dtype not in REAL:
        raise ArgumentError(f"`x` is {x.dtype}; expected float32 or float64")
    _check_planes(x, norm, "width")


def check_spectra(x: Any, width: int, norm: str) -> None:
    """Raise unless `x` is `[count, height, width // 2 + 1]`, spectra of such images."""
    expect_array("x", x)
    if x.dtype not in COMPLEX:
        raise ArgumentError(f"`x` is {x.dtype}; expected complex64 or complex128")
    _check_planes(x, norm, "width // 2 + 1")
    if width < 1 or x.shape[-1] != width // 2 + 1:
        raise ArgumentError(
            f"`width` is {width}; `x` of shape {tuple(x.shape)} is of images that are "
            f"{2 * x.shape[-1] - 2} or {2 * x.shape[-1] - 1} wide"
        )


def _check_planes(x: Tensor, norm: str, last: str) -> None:
    if x.ndim != 3 or 0 in x.shape[1:]:
        raise ArgumentError(
            f"`x` must be `[count, height, {last}]`, none of the last two 0, got shape "
            f"{tuple(x.shape)}"
        )
    checked_norm(norm)


def checked_length(
    x: Tensor, n: SupportsIndex | None, dim: SupportsIndex, *, halved: bool = False
) -> tuple[int, int]:
    """Return the length of a transform along one dim, and that dim counted from the front."""
    (length,), (axis,) = _resolved(x, "n", (n,), (expect_dim(x, dim),), halved)
    return length, axis


def checked_lengths(
    x: Tensor,
    s: Lengths | None,
    dim: Lengths | None,
    *,
    halved: bool = False,
    count: int | None = None,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the lengths along several dims, and those dims counted from the front.

    Args:
        x: What is transformed.
        s: A length for each dim, -1 for what there is; None for all that there is.
        dim: The dims; None for the last ones, as many as `s` has, or all.
        halved: Whether `x` is one half of a spectrum, whose last dim has no length of its
            own.
        count: How many dims there must be, if that is known.
    """
    if s is None and dim == LAST_TWO and not halved and x.ndim >= 2:
        # Nearly every call comes along here.
        height, width = x.shape[-2:]
        if height > 0 and width > 0:
            return (height, width), (x.ndim - 2, x.ndim - 1)
    asked = None if s is None else _numbers("s", s)
    if dim is None:
        first = 0 if asked is None else x.ndim - len(asked)
        if first < 0:
            raise ArgumentError(f"`s` {asked} has more lengths than `x` has dims, {x.ndim}")
        dims = tuple(range(first, x.ndim))
    else:
        dims = tuple(expect_dim(x, i) for i in _numbers("dim", dim))
    if not dims or len(set(dims)) < len(dims):
        raise ArgumentError(f"`dim` {dim} must name dims of `x`, each once")
    if count is not None and len(dims) != count:
        raise ArgumentError(f"`dim` {dim} must name {count} dims; the names in n take any")
    if asked is not None and len(asked) != len(dims):
        raise ArgumentError(
            f"`s` {asked} has {len(asked)} lengths for {len(dims)} dims {dims}: give one each"
        )
    wanted = tuple(None if n == -1 else n for n in asked or (None,) * len(dims))
    return _resolved(x, "s", wanted, dims, halved)


def _resolved(
    x: Tensor,
    argument: str,
    wanted: Sequence[SupportsIndex | None],
    dims: tuple[int, ...],
    halved: bool,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    lengths: list[int] = []
    for n, dim in zip(wanted, dims, strict=True):
        there = x.shape[dim]
        if halved and dim == dims[-1]:
            if there < 1:
                raise ArgumentError(f"`x` of shape {tuple(x.shape)} is empty along dim {dim}")
            there = 2 * (there - 1)
        length = there if n is None else _whole(argument, n)
        if length < 1:
            if n is None:
                raise ArgumentError(
                    f"`x` of shape {tuple(x.shape)} has {length} numbers along dim {dim}, and "
                    f"a transform needs at least 1: give `{argument}`"
                )
            raise ArgumentError(f"`{argument}` is {length} for dim {dim}; expected at least 1")
        lengths.append(length)
    return tuple(lengths), dims


def _numbers(argument: str, value: Any) -> tuple[int, ...]:
    several = value if isinstance(value, Sequence) else (value,)
    return tuple([_whole(argument, each) for each in several])


def _whole(argument: str, value: Any) -> int:
    if type(value) is int or isinstance(value, torch.SymInt):
        return value  # pyright: ignore[reportReturnType]
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise ArgumentError(
            f"`{argument}` must be made of whole numbers, got {value!r}"
        ) from None
