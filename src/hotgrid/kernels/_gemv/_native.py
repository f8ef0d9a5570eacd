"""The candidate of the C++ core: threads of its own, int8 by dot products of bytes."""

from functools import partial

import torch
from torch import Tensor

from hotgrid import _native
from hotgrid.kernels._openmp import core
from hotgrid.kernels.tune import NATIVE, Call, Candidate, in_red_zones

_TYPES = {torch.float32: 0, torch.bfloat16: 1, torch.int8: 2}
_NAMES = [str(each).removeprefix("torch.") for each in _TYPES]


def _core_gemv(
    weight: Tensor, x: Tensor, scale: Tensor | None, checked: bool = False
) -> Tensor:
    x = x.contiguous()
    count, (rows, cols) = x.shape[0], weight.shape
    by_columns = not lies_in_rows(weight)
    stride = max(weight.stride(1 if by_columns else 0), rows if by_columns else cols)
    factors = scale.float().contiguous() if scale is not None else None
    y = x.new_empty((count, rows))
    numbers = (rows, cols, stride, by_columns, count)
    if checked:
        inputs = {"weight": weight, "scale": factors, "x": x}
        in_red_zones("gemv.core", partial(_multiply, numbers), inputs, {"y": y})
    else:
        _multiply(numbers, weight, factors, x, y)
    return y


def _multiply(
    numbers: tuple[int, ...], weight: Tensor, factors: Tensor | None, x: Tensor, y: Tensor
) -> None:
    core().gemv(
        weight.data_ptr(),
        _TYPES[weight.dtype],
        0 if factors is None else factors.data_ptr(),
        x.data_ptr(),
        x.dtype == torch.bfloat16,
        y.data_ptr(),
        *numbers,
        torch.get_num_threads(),
    )


def _applies(call: Call) -> bool:
    return (
        _native.available()
        and call.device.type == "cpu"
        and call.dtype in _NAMES
        and call.settings["x"] in ("float32", "bfloat16")
        and call.layout != "strided"
    )


def lies_in_rows(weight: Tensor) -> bool:
    """Return whether the rows of a matrix are contiguous and do not overlap."""
    rows, cols = weight.shape
    down, along = weight.stride()
    return (along == 1 or cols == 1) and (down >= cols or rows == 1)


CORE = Candidate(
    name="core",
    function=_core_gemv,
    applies=_applies,
    group=NATIVE,
    checked=partial(_core_gemv, checked=True),
)
