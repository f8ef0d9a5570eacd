"""Top-k as the tuner sees it."""

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.kernels.tune import Call, Op, Tuned, Work

from ._native import CORE
from ._reference import reference
from ._tensor import EXTREMUM, SELECT, SELECT_LAST, SORT, SORT_LAST
from ._triton import STREAMING_GPU

_INDEX_BYTES = 8
_BITS = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
_MOST_COMPARED = 2**24  # elements; a sort of more than that takes minutes on a slow CPU

# Equals are tried in this order.
CANDIDATES = (STREAMING_GPU, CORE, SELECT, SELECT_LAST, EXTREMUM, SORT_LAST, SORT)


def describe(x: Tensor, k: int, dim: int, largest: bool, sorted: bool) -> Call:
    """Describe a call: lines of length `n`, `outer` and `inner` of them around `dim`."""
    return Call(
        op="topk",
        dtype=str(x.dtype).removeprefix("torch."),
        device=x.device,
        layout=_layout(x, dim),
        sizes={
            "outer": prod(x.shape[:dim]),
            "n": x.shape[dim],
            "inner": prod(x.shape[dim + 1 :]),
            "k": k,
        },
        settings={"largest": largest, "sorted": sorted},
    )


def _layout(x: Tensor, dim: int) -> str:
    """`rows`: lines lie in one piece; `columns`: contiguous, across; `strided`: neither."""
    if not x.is_contiguous():
        return "strided"
    return "rows" if x.stride(dim) == 1 or prod(x.shape[dim + 1 :]) == 1 else "columns"


def work(call: Call) -> Work:
    """Everything is read once; k values and k indices of each line are written."""
    size, sizes = _itemsize(call.dtype), call.sizes
    lines = sizes["outer"] * sizes["inner"]
    return Work(bytes=lines * (sizes["n"] * size + sizes["k"] * (size + _INDEX_BYTES)))


def _itemsize(dtype: str) -> int:
    return getattr(torch, dtype).itemsize


def compare(
    expected: tuple[Tensor, Tensor],
    found: tuple[Tensor, Tensor],
    x: Tensor,
    k: int,
    dim: int,
    largest: bool,
    sorted: bool,
) -> str | None:
    """Say what differs: values and indices are exact; unsorted ones may be in any order."""
    for name, right, got in zip(("values", "indices"), expected, found, strict=True):
        if got.shape != right.shape or got.dtype != right.dtype or got.device != right.device:
            return (
                f"{name} are {got.dtype} {tuple(got.shape)} on {got.device} and should be "
                f"{right.dtype} {tuple(right.shape)} on {right.device}"
            )
    if not sorted:
        expected, found = _by_index(expected, dim), _by_index(found, dim)
    pairs = zip(("values", "indices"), expected, found, strict=True)
    for name, right, got in reversed(list(pairs)):
        wrong = right != got
        if right.is_floating_point():
            wrong &= ~(right.isnan() & got.isnan())
        if bool(wrong.any()):
            at = tuple(int(i) for i in wrong.nonzero()[0])
            return (
                f"{name} at {at} are {got[at].item()} and should be {right[at].item()}, "
                f"{int(wrong.sum())} of {wrong.numel()} are wrong"
            )
    return None


def _by_index(pair: Sequence[Tensor], dim: int) -> tuple[Tensor, Tensor]:
    values, (indices, order) = pair[0], torch.sort(pair[1], dim=dim)
    # torch does not gather wide unsigned numbers; their bits are gathered as signed ones.
    bits = values.view(_BITS[values.dtype]) if values.dtype in _BITS else values
    return bits.gather(dim, order).view(values.dtype), indices


def excerpt(x: Tensor, k: int, dim: int, largest: bool, sorted: bool) -> tuple[Any, ...]:
    """Whole lines, and not more of them than are sorted quickly; contiguous if all were."""
    lies_well = x.is_contiguous()
    for other in range(x.ndim):
        if other != dim and x.numel() > _MOST_COMPARED:
            keep = max(1, x.shape[other] * _MOST_COMPARED // x.numel())
            x = x.narrow(other, 0, keep)
    return x.contiguous() if lies_well else x, k, dim, largest, sorted


def sample(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
    *,
    k: int,
    dim: int,
    largest: bool,
    sorted: bool,
) -> tuple[Any, ...]:
    """Random numbers, the same on every run."""
    from ._arguments import checked_arguments

    if not 0 < prod(shape) < 2**40:
        raise ArgumentError(f"`shape` {shape} must have sizes of at least 1 that fit in memory")
    if k < 1:
        raise ArgumentError(f"`k` is {k}; with less than 1 there is nothing to time")
    draw = torch.Generator(device="cpu").manual_seed(0)
    numbers = torch.randn(shape, generator=draw) * 100
    x = numbers.to(device=device).to(dtype)
    return checked_arguments(x, k, dim, largest, sorted)


TOPK = Op(
    name="topk",
    reference=reference,
    candidates=CANDIDATES,
    describe=describe,
    work=work,
    compare=compare,
    sample=sample,
    options={"k": 1, "dim": -1, "largest": True, "sorted": True},
    excerpt=excerpt,
)
"""Top-k: the reference, the candidates, and facts for the tuner."""

tuned_topk = Tuned(TOPK)
"""Top-k through the fastest candidate; arguments are positional and checked before."""
