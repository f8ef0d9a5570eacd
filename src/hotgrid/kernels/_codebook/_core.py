"""The candidate of the C++ core: codes are multiplied as they are.

The smallest of these products take 15 us, so that every step on the way to them counts.
`x.shape[0]` is twice as fast as `len(x)`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from hotgrid import _native
from hotgrid.kernels._team import core
from hotgrid.kernels.tune import NATIVE, Call, Candidate, in_red_zones

_BF16, _F32 = torch.bfloat16, torch.float32
CORE_TYPES = (_F32, _BF16)
"""The types of x that the core takes."""


def core_product(
    form: str,
    x: Tensor,
    codes: Tensor,
    scale: Tensor,
    table: Tensor | None,
    signs: Tensor | None,
    checked: bool = False,
) -> Tensor:
    """Return `x @ matrix.T` for `x` `[count, cols]` of f32 or bf16, on the CPU."""
    wanted = _BF16 if form == "int4" else _F32
    if scale.dtype is not wanted:  # the module was cast as a whole
        scale = scale.to(wanted)
    if form == "pq" and table is not None and table.ndim == 3:
        table = table.float()
    x, codes, scale = x.contiguous(), codes.contiguous(), scale.contiguous()
    table = None if table is None else table.contiguous()
    signs = None if signs is None else signs.contiguous()
    count, rows = x.shape[0], (scale if form == "pq" else codes).shape[0]
    y = x.new_empty(count, rows)
    if checked:
        inputs = {"x": x, "codes": codes, "scale": scale, "table": table, "signs": signs}
        in_red_zones("codebook.core", partial(_multiply, form), inputs, {"y": y})
    else:
        _multiply(form, x, codes, scale, table, signs, y)
    return y


def core_bound(form: str, x: Tensor, *parts: Any) -> Callable[[Tensor], Tensor] | None:
    """Return a function for contiguous `x` `[..., cols]` of this shape and type.

    The parts must stay alive and where they are. None where they would have to be converted.
    """
    codes, scale, table, _ = parts
    if not all(part is None or part.is_contiguous() for part in parts):
        return None
    fits = scale.dtype is (_BF16 if form == "int4" else _F32)
    if not fits or (form == "pq" and table.ndim == 3 and table.dtype is not _F32):
        return None
    *outer, cols = x.shape
    rows = (scale if form == "pq" else codes).shape[0]
    run = _PRODUCTS[form]((rows, cols, x.numel() // cols), x.dtype is _BF16, *parts)

    def product(x: Tensor) -> Tensor:
        y = x.new_empty(*outer, rows)
        run(x.data_ptr(), y.data_ptr())
        return y

    return product


_Sizes = tuple[int, int, int]  # rows, cols, count
_Run = Callable[[int, int], None]  # takes the addresses of x and y
_threads = torch.get_num_threads


def _multiply(form: str, x: Tensor, *rest: Any) -> None:
    *parts, y = rest
    sizes = (y.shape[1], x.shape[1], x.shape[0])
    _PRODUCTS[form](sizes, x.dtype is _BF16, *parts)(x.data_ptr(), y.data_ptr())


def _int8(sizes: _Sizes, half: bool, codes: Tensor, scale: Tensor, _: None, __: None) -> _Run:
    (rows, cols, count), gemv = sizes, core().gemv
    w, by = codes.data_ptr(), scale.data_ptr()
    return lambda x, y: gemv(
        w, 2, by, x, half, y, rows, cols, cols, False, count, _threads()
    )  # fmt: skip


def _int4(sizes: _Sizes, half: bool, codes: Tensor, scale: Tensor, _: None, __: None) -> _Run:
    (rows, cols, count), gemv = sizes, core().gemv_int4
    w, by = codes.data_ptr(), scale.data_ptr()
    return lambda x, y: gemv(w, by, x, half, y, rows, cols, count, _threads())


def _rows(
    sizes: _Sizes, half: bool, codes: Tensor, scale: Tensor, table: Tensor, _: None
) -> _Run:
    (rows, cols, count), gemv = sizes, core().gemv_rows
    w, by, ids, known = table.data_ptr(), scale.data_ptr(), codes.data_ptr(), table.shape[0]
    return lambda x, y: gemv(
        w, by, ids, x, half, y, rows, cols, known, count, _threads()
    )  # fmt: skip


def _pq(
    sizes: _Sizes, half: bool, codes: Tensor, scale: Tensor, table: Tensor, signs: Tensor | None
) -> _Run:
    rows, cols, count = sizes
    turned = 0 if signs is None else signs.data_ptr()
    w, names, by = codes.data_ptr(), table.data_ptr(), scale.data_ptr()
    if table.ndim == 1:
        gemv = core().gemv_levels
        return lambda x, y: gemv(
            w, names, by, turned, x, half, y, rows, cols, count, _threads()
        )  # fmt: skip
    books, width, _ = table.shape
    gemv = core().gemv_subvectors
    return lambda x, y: gemv(
        w, names, by, turned, x, half, y, rows, cols, width, books, count, _threads()
    )  # fmt: skip


_PRODUCTS: dict[str, Callable[..., _Run]] = {
    "int8": _int8,
    "int4": _int4,
    "rows": _rows,
    "pq": _pq,
}


def _applies(call: Call) -> bool:
    return (
        _native.available()
        and call.device.type == "cpu"
        and call.dtype in ("float32", "bfloat16")
    )


CORE = Candidate(
    name="core",
    function=core_product,
    applies=_applies,
    group=NATIVE,
    checked=partial(core_product, checked=True),
)
