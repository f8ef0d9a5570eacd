"""The candidate of the C++ core: multiplies codes without decoding.

The smallest of these products take 15 us, so every step before them counts.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from hotgrid import _native
from hotgrid.kernels._openmp import core
from hotgrid.kernels.tune import NATIVE, Call, Candidate, in_red_zones

_BF16, _F32 = torch.bfloat16, torch.float32


def _core_product(
    form: str,
    x: Tensor,
    codes: Tensor,
    scale: Tensor,
    table: Tensor | None,
    signs: Tensor | None,
    checked: bool = False,
) -> Tensor:
    """Return `x @ matrix.T` for `x` `[count, cols]` of f32 or bf16, on the CPU."""
    # `module.to(dtype)` may have cast the scales.
    scale = scale.to(_BF16 if form == "int4" else _F32)
    if form == "pq" and table is not None and table.ndim == 3:
        table = table.float()
    given = {"x": x, "codes": codes, "scale": scale, "table": table, "signs": signs}
    inputs = {name: None if part is None else part.contiguous() for name, part in given.items()}
    multiply, shape = _planned(form, x, codes, scale, table)
    y = x.new_empty(shape)
    if checked:
        in_red_zones("codebook.core", multiply, inputs, {"y": y})
    else:
        multiply(*inputs.values(), y)
    return y


def _core_ready(
    form: str, x: Tensor, codes: Tensor, scale: Tensor, table: Any, signs: Tensor | None
) -> Callable[..., Tensor] | None:
    """Return a function for tensors of these shapes and types; None if they must be copied."""
    given = (x, codes, scale, table, signs)
    if not all(part is None or part.is_contiguous() for part in given):
        return None
    fits = scale.dtype is (_BF16 if form == "int4" else _F32)
    if not fits or (form == "pq" and table.ndim == 3 and table.dtype is not _F32):
        return None
    multiply, shape = _planned(form, x, codes, scale, table)

    def run(_: str, x: Tensor, codes: Tensor, scale: Tensor, table: Any, signs: Any) -> Tensor:
        y = x.new_empty(*shape)  # faster than as a tuple
        multiply(x, codes, scale, table, signs, y)
        return y

    return run


def _planned(
    form: str, x: Tensor, codes: Tensor, scale: Tensor, table: Any
) -> tuple[Callable[..., None], tuple[int, int]]:
    """Return a function that multiplies tensors of these shapes, and the shape of the result.

    It takes `x`, the parts, and the tensor for the result.
    """
    (count, cols), half = x.shape, x.dtype is _BF16
    rows = (scale if form == "pq" else codes).shape[0]
    threads = torch.get_num_threads
    if form == "int8":
        gemv = core().gemv
        multiply: Any = lambda x, w, by, _, __, y: gemv(
            w.data_ptr(), 2, by.data_ptr(), x.data_ptr(), half, y.data_ptr(),
            rows, cols, cols, False, count, threads(),
        )  # fmt: skip
    elif form == "int4":
        gemv = core().gemv_int4
        multiply = lambda x, w, by, _, __, y: gemv(
            w.data_ptr(), by.data_ptr(), x.data_ptr(), half, y.data_ptr(),
            rows, cols, count, threads(),
        )  # fmt: skip
    elif form == "rows":
        known, gemv = table.shape[0], core().gemv_rows
        multiply = lambda x, ids, by, w, _, y: gemv(
            w.data_ptr(), by.data_ptr(), ids.data_ptr(), x.data_ptr(), half, y.data_ptr(),
            rows, cols, known, count, threads(),
        )  # fmt: skip
    else:
        levels = table.ndim == 1
        gemv = core().gemv_levels if levels else core().gemv_subvectors
        sizes = (rows, cols) if levels else (rows, cols, table.shape[1], table.shape[0])
        multiply = lambda x, w, by, names, signs, y: gemv(
            w.data_ptr(), names.data_ptr(), by.data_ptr(),
            0 if signs is None else signs.data_ptr(), x.data_ptr(), half, y.data_ptr(),
            *sizes, count, threads(),
        )  # fmt: skip
    return multiply, (count, rows)


def _applies(call: Call) -> bool:
    return (
        _native.available()
        and call.device.type == "cpu"
        and call.dtype in ("float32", "bfloat16")
    )


CORE = Candidate(
    name="core",
    function=_core_product,
    applies=_applies,
    group=NATIVE,
    checked=partial(_core_product, checked=True),
    ready=_core_ready,
    # On a CPU the only other candidate decodes first.
    always_wins=True,
)
