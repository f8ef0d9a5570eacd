"""Convolve as the tuner sees it."""

from math import prod
from typing import Any

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.kernels.tune import Call, Op, Tuned, Work

from ._arguments import check_weights
from ._bands import BANDS
from ._direct import SHIFTS, WINDOWS
from ._fourier import FOURIER
from ._reference import reference
from ._tables import TABLES

_MOST_COMPARED = 2**25  # products of the reference
# Of the largest cell times the length of the kernel as a vector; half precision is f32 inside.
_FORGIVEN, _FORGIVEN_DOUBLE = 1e-5, 1e-13

# Equals are tried in this order.
CANDIDATES = (FOURIER, TABLES, BANDS, SHIFTS, WINDOWS)


def describe(x: Tensor, kernel: Tensor, before: tuple[int, ...], periodic: bool) -> Call:
    """Describe a call: `count` grids of sizes n, and the very size of the kernel."""
    return Call(
        op="convolve",
        dtype=str(x.dtype).removeprefix("torch."),
        device=x.device,
        layout="plain" if x.is_contiguous() else "strided",
        sizes={
            "count": x.shape[0],
            **{f"n{i}": n for i, n in enumerate(x.shape[1:])},
        },
        settings={
            # In a bucket of radii the first to be tuned would decide for the others.
            "kernel": "x".join(map(str, kernel.shape)),
            "boundary": "periodic" if periodic else "zero",
        },
    )


def work(call: Call) -> Work:
    """Every cell is read and written once; how much is computed is up to the candidate."""
    return Work(bytes=2 * prod(call.sizes.values()) * getattr(torch, call.dtype).itemsize)


def compare(
    expected: Tensor,
    found: Tensor,
    x: Tensor,
    kernel: Tensor,
    before: tuple[int, ...],
    periodic: bool,
) -> str | None:
    """Say what differs beyond rounding.

    A cell that sees NaN or Inf is not finite; other cells of its grid may be so too.
    """
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return (
            f"the result is {found.dtype} {tuple(found.shape)} and should be "
            f"{expected.dtype} {tuple(expected.shape)}"
        )
    if not bool(kernel.isfinite().all()):
        lost = bool(found.isfinite().all()) and not bool(expected.isfinite().all())
        return "NaN or Inf of the kernel are lost" if lost else None
    calm = x.isfinite().flatten(1).all(1)
    if bool((found.isfinite() & ~expected.isfinite())[~calm].any()):
        return "NaN or Inf of a cell are lost"
    right, got = expected[calm].double().flatten(1), found[calm].double().flatten(1)
    limits = torch.finfo(x.dtype)
    forgiven = _FORGIVEN_DOUBLE if x.dtype == torch.float64 else _FORGIVEN
    size = x[calm].double().abs().flatten(1).amax(1, keepdim=True) * kernel.double().norm()
    rounding = 2 * limits.eps * (right.abs() + limits.smallest_normal)
    wrong = ~((got - right).abs() <= forgiven * size + rounding) & (got != right)
    if bool(wrong.any()):
        error = ((got - right).abs() / size).nan_to_num(torch.inf).max()
        return (
            f"{int(wrong.sum())} of {wrong.numel()} cells are wrong, the error is {error:.2g}"
        )
    return None


def excerpt(x: Tensor, kernel: Tensor, *others: Any) -> tuple[Any, ...]:
    """A part of the cells, in which the kernel still fits, that is computed quickly."""
    lies_well, part, most = x.is_contiguous(), x, _MOST_COMPARED // kernel.numel()
    for dim, least in enumerate((1, *kernel.shape)):
        keep = max(least, part.shape[dim] * most // part.numel())
        part = part.narrow(dim, 0, min(keep, part.shape[dim]))
    if part.shape == x.shape:
        return x, kernel, *others
    return (part.contiguous() if lies_well else part), kernel, *others


def sample(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
    *,
    radius: int,
    dims: int,
    boundary: str,
) -> tuple[Any, ...]:
    """Random cells and weights, the same on every run."""
    if not 1 <= dims <= 3 or len(shape) < dims or min(shape) < 1:
        raise ArgumentError(
            f"`dims` is {dims}; expected 1, 2 or 3, and no more than `shape` {shape} has"
        )
    if radius < 0 or 2 * radius + 1 > min(shape[-dims:]):
        raise ArgumentError(
            f"`radius` is {radius}; a kernel of {2 * radius + 1} must fit into {shape[-dims:]}"
        )
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(shape, generator=draw).to(device, dtype)
    kernel = torch.randn((2 * radius + 1,) * dims, generator=draw).to(device, dtype)
    check_weights(x, kernel, boundary)
    return x.reshape(-1, *shape[-dims:]), kernel, (radius,) * dims, boundary == "periodic"


CONVOLVE = Op(
    name="convolve",
    reference=reference,
    candidates=CANDIDATES,
    describe=describe,
    work=work,
    compare=compare,
    sample=sample,
    options={"radius": 1, "dims": 2, "boundary": "periodic"},
    excerpt=excerpt,
)
"""A kernel over every cell: the reference, the candidates, and facts for the tuner."""

tuned_convolve = Tuned(CONVOLVE)
"""Convolve `[count, *space]` through the fastest candidate; arguments are checked before."""
