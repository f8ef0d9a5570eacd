"""Top-k on a GPU in one pass over the numbers, for small k."""

from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any

from torch import Tensor

from hotgrid.kernels.tune import TRITON, Call, Candidate, Faults

# More no longer fit in the registers of a thread.
_MOST = 32
_ROWS, _COLUMNS = "rows", "columns"
# The keys of int64 have no number to spare for an empty place.
_KINDS = frozenset(
    ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "uint8")
)


def _applies(call: Call) -> bool:
    fits = call.sizes["k"] <= _MOST and call.sizes["n"] < 2**31 and call.dtype in _KINDS
    return fits and call.layout in (_ROWS, _COLUMNS)


def _best(
    x: Tensor, k: int, dim: int, largest: bool, faults: Faults | None
) -> tuple[Tensor, Tensor]:
    sizes = x.shape
    behind = sizes[dim + 1 :]
    shape, n, inner = (*sizes[:dim], k, *behind), sizes[dim], prod(behind)
    by_rows, by_columns = _kernels()
    if inner == 1:
        return by_rows(x, k, (x.numel() // n, n), shape, largest, faults)
    return by_columns(x, k, (x.numel() // (n * inner), n, inner), shape, largest, faults)


@cache
def _kernels() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Both kernels, imported lazily: Triton is optional."""
    from ._triton_columns import best_of_columns
    from ._triton_rows import best_of_rows

    return best_of_rows, best_of_columns


def _streaming(
    x: Tensor, k: int, dim: int, largest: bool, sorted: bool
) -> tuple[Tensor, Tensor]:
    """The result is always sorted."""
    return _best(x, k, dim, largest, None)


def _streaming_checked(
    x: Tensor, k: int, dim: int, largest: bool, sorted: bool
) -> tuple[Tensor, Tensor]:
    written = x.numel() // x.shape[dim] * k
    # What goes from one pass to the next is less than `x`.
    between = {"keys and places": x.numel()}
    sizes = {"x": x.numel(), "values": written, "indices": written, **between}
    faults = Faults("topk.triton", sizes, x.device)
    found = _best(x, k, dim, largest, faults)
    faults.expect_none()
    return found


STREAMING_GPU = Candidate(
    name="triton",
    function=_streaming,
    applies=_applies,
    group=TRITON,
    checked=_streaming_checked,
)
