"""The candidate of the C++ core: codes are multiplied as they are.

The smallest of these products take 15 us, so that every step on the way to them counts.
`x.shape[0]` is twice as fast as `len(x)`.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from hotgrid import _native
from hotgrid.kernels.tune import NATIVE, Call, Candidate

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
) -> Tensor:
    """Return `x @ matrix.T` for `x` `[count, cols]` of f32 or bf16, on the CPU."""
    wanted = _BF16 if form == "int4" else _F32
    if scale.dtype is not wanted:  # the module was cast as a whole
        scale = scale.to(wanted)
    return _PRODUCTS[form](x.contiguous(), codes, scale, table, signs)


def _int8(x: Tensor, codes: Tensor, scale: Tensor, *_: Tensor | None) -> Tensor:
    (rows, cols), count = codes.shape, x.shape[0]
    y = x.new_empty(count, rows)
    _native.core().gemv(
        codes.data_ptr(), 2, scale.data_ptr(), x.data_ptr(), x.dtype is _BF16, y.data_ptr(),
        rows, cols, cols, False, count, torch.get_num_threads(),
    )  # fmt: skip
    return y


def _int4(x: Tensor, codes: Tensor, scale: Tensor, *_: Tensor | None) -> Tensor:
    (count, cols), rows = x.shape, codes.shape[0]
    y = x.new_empty(count, rows)
    _native.core().gemv_int4(
        codes.data_ptr(), scale.data_ptr(), x.data_ptr(), x.dtype is _BF16, y.data_ptr(),
        rows, cols, count, torch.get_num_threads(),
    )  # fmt: skip
    return y


def _rows(x: Tensor, codes: Tensor, scale: Tensor, table: Tensor, _: Tensor | None) -> Tensor:
    (count, cols), rows, k = x.shape, codes.shape[0], table.shape[0]
    y = x.new_empty(count, rows)
    _native.core().gemv_rows(
        table.data_ptr(), scale.data_ptr(), codes.data_ptr(), x.data_ptr(), x.dtype is _BF16,
        y.data_ptr(), rows, cols, k, count, torch.get_num_threads(),
    )  # fmt: skip
    return y


def _pq(x: Tensor, codes: Tensor, scale: Tensor, table: Tensor, signs: Tensor | None) -> Tensor:
    (count, cols), rows = x.shape, scale.shape[0]
    y = x.new_empty(count, rows)
    turned = 0 if signs is None else signs.data_ptr()
    half, threads = x.dtype is _BF16, torch.get_num_threads()
    if table.ndim == 1:
        _native.core().gemv_levels(
            codes.data_ptr(), table.data_ptr(), scale.data_ptr(), turned, x.data_ptr(), half,
            y.data_ptr(), rows, cols, count, threads,
        )  # fmt: skip
        return y
    books, width, _ = table.shape
    wide = table.float()
    _native.core().gemv_subvectors(
        codes.data_ptr(), wide.data_ptr(), scale.data_ptr(), turned, x.data_ptr(), half,
        y.data_ptr(), rows, cols, width, books, count, threads,
    )  # fmt: skip
    return y


_PRODUCTS: dict[str, Callable[..., Tensor]] = {
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


CORE = Candidate(name="core", function=core_product, applies=_applies, group=NATIVE)
