"""Top-k on a GPU in one pass over the numbers, for small k."""

from math import prod

from torch import Tensor

from hotgrid.kernels.tune import TRITON, Call, Candidate, Faults

# Beyond it the best no longer fit in the registers of a thread.
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
    shape = (*x.shape[:dim], k, *x.shape[dim + 1 :])
    n, inner = x.shape[dim], prod(x.shape[dim + 1 :])
    if inner == 1:
        from ._triton_rows import best_of_rows

        values, indices = best_of_rows(x.view(-1, n), k, largest, faults=faults)
    else:
        from ._triton_columns import best_of_columns

        values, indices = best_of_columns(x.view(-1, n, inner), k, largest, faults=faults)
    return values.view(shape), indices.view(shape)


def _streaming(
    x: Tensor, k: int, dim: int, largest: bool, sorted: bool
) -> tuple[Tensor, Tensor]:
    """The result is in order whether `sorted` asks for it or not."""
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
