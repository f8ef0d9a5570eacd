"""The candidate of the C++ core: codes are multiplied as they are.

The smallest of these products take 15 us, so that every step on the way to them counts.
`x.shape[0]` is twice as fast as `len(x)`.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from hotgrid import _native
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
    x = x.contiguous()
    (count, cols), rows = x.shape, (scale if form == "pq" else codes).shape[0]
    y = x.new_empty(count, rows)
    product, sizes = _PRODUCTS[form], (rows, cols, count)
    if checked:
        inputs = {"x": x, "codes": codes, "scale": scale, "table": table, "signs": signs}
        in_red_zones("codebook.core", partial(product, sizes), inputs, {"y": y})
    else:
        product(sizes, x, codes, scale, table, signs, y)
    return y


_Sizes = tuple[int, int, int]  # rows, cols, count


def _int8(
    sizes: _Sizes, x: Tensor, codes: Tensor, scale: Tensor, _: None, __: None, y: Tensor
) -> None:
    rows, cols, count = sizes
    _native.core().gemv(
        codes.data_ptr(), 2, scale.data_ptr(), x.data_ptr(), x.dtype is _BF16, y.data_ptr(),
        rows, cols, cols, False, count, torch.get_num_threads(),
    )  # fmt: skip


def _int4(
    sizes: _Sizes, x: Tensor, codes: Tensor, scale: Tensor, _: None, __: None, y: Tensor
) -> None:
    _native.core().gemv_int4(
        codes.data_ptr(), scale.data_ptr(), x.data_ptr(), x.dtype is _BF16, y.data_ptr(),
        *sizes, torch.get_num_threads(),
    )  # fmt: skip


def _rows(
    sizes: _Sizes, x: Tensor, codes: Tensor, scale: Tensor, table: Tensor, _: None, y: Tensor
) -> None:
    rows, cols, count = sizes
    _native.core().gemv_rows(
        table.data_ptr(), scale.data_ptr(), codes.data_ptr(), x.data_ptr(), x.dtype is _BF16,
        y.data_ptr(), rows, cols, table.shape[0], count, torch.get_num_threads(),
    )  # fmt: skip


def _pq(
    sizes: _Sizes,
    x: Tensor,
    codes: Tensor,
    scale: Tensor,
    table: Tensor,
    signs: Tensor | None,
    y: Tensor,
) -> None:
    rows, cols, count = sizes
    turned = 0 if signs is None else signs.data_ptr()
    half, threads = x.dtype is _BF16, torch.get_num_threads()
    if table.ndim == 1:
        _native.core().gemv_levels(
            codes.data_ptr(), table.data_ptr(), scale.data_ptr(), turned, x.data_ptr(), half,
            y.data_ptr(), rows, cols, count, threads,
        )  # fmt: skip
        return
    books, width, _ = table.shape
    _native.core().gemv_subvectors(
        codes.data_ptr(), table.data_ptr(), scale.data_ptr(), turned, x.data_ptr(), half,
        y.data_ptr(), rows, cols, width, books, count, threads,
    )  # fmt: skip


_PRODUCTS: dict[str, Callable[..., None]] = {
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
