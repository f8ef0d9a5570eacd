"""Gemv on a GPU, for matrices with contiguous rows or columns."""

from collections.abc import Callable

from torch import Tensor

from hotgrid.kernels.tune import TRITON, Call, Candidate, Faults

# Sums of more vectors no longer fit in the registers of a thread.
_MOST = 8
_KINDS = frozenset(("float32", "float64", "float16", "bfloat16", "int8"))


def _applies(call: Call) -> bool:
    rows, cols, count = (call.sizes[name] for name in ("rows", "cols", "count"))
    # Kernels count vectors and rows in 32 bits; only the matrix may have more numbers.
    fits = count <= _MOST and count * max(rows, cols) < 2**30
    # fp64 is summed in fp64 only where the matrix is of it.
    same = call.dtype == "float64" or call.settings["x"] != "float64"
    return fits and same and call.layout != "strided" and call.dtype in _KINDS


def _product(weight: Tensor, x: Tensor, scale: Tensor | None, faults: Faults | None) -> Tensor:
    from ._triton_gemv import matrix_times_vectors

    factors = None if scale is None else scale.contiguous()
    return matrix_times_vectors(weight, x.contiguous(), factors, faults=faults)


def _walking(weight: Tensor, x: Tensor, scale: Tensor | None) -> Tensor:
    return _product(weight, x, scale, None)


def _walking_ready(
    weight: Tensor, x: Tensor, scale: Tensor | None
) -> Callable[..., Tensor] | None:
    """Return a function for tensors of the same types, shapes, strides and device.

    None if the kernel has not yet run on such tensors, or if it needs more than one launch.
    """
    from ._triton_gemv import product_like

    contiguous = x.is_contiguous() and (scale is None or scale.is_contiguous())
    return product_like(weight, x, scale) if contiguous else None


def _walking_checked(weight: Tensor, x: Tensor, scale: Tensor | None) -> Tensor:
    rows, columns = weight.shape
    down, along = weight.stride()
    read = 1 + (rows - 1) * down + (columns - 1) * along
    # The matrix may be cut into as many parts as keep a GPU busy.
    sizes = {"weight": read, "x": x.numel(), "sums": rows * len(x) * columns, "scale": rows}
    faults = Faults("gemv.triton", sizes, weight.device)
    found = _product(weight, x, scale, faults)
    faults.expect_none()
    return found


WALKING_GPU = Candidate(
    name="triton",
    function=_walking,
    applies=_applies,
    group=TRITON,
    checked=_walking_checked,
    ready=_walking_ready,
)
