"""Gemv as the tuner sees it."""

from typing import Any

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.kernels.tune import Call, Op, Tuned, Work

from ._native import CORE, lies_in_rows
from ._reference import reference
from ._tensor import CONVERTED, LINEAR, MATMUL, VECTOR
from ._triton import WALKING_GPU

_MOST_COMPARED = 2**22  # elements of the matrix
# Relative error of a whole result: sums in another order, and results rounded to a type.
_FORGIVEN = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 2e-3}
_FORGIVEN_INT8 = 1e-3
_FORGIVEN_ROUGH = 1e-2

# Equals are tried in this order.
CANDIDATES = (CORE, WALKING_GPU, VECTOR, MATMUL, LINEAR, CONVERTED)


def describe(weight: Tensor, x: Tensor, scale: Tensor | None) -> Call:
    """Describe a call: a matrix `[rows, cols]` and `count` vectors."""
    return Call(
        op="gemv",
        dtype=str(weight.dtype).removeprefix("torch."),
        device=weight.device,
        layout=_layout(weight),
        sizes={"rows": weight.shape[0], "cols": weight.shape[1], "count": x.shape[0]},
        settings={"x": str(x.dtype).removeprefix("torch.")},
    )


def _layout(weight: Tensor) -> str:
    """`rows`: each row in one piece; `columns`: each column; `strided`: neither."""
    if lies_in_rows(weight):
        return "rows"
    return "columns" if lies_in_rows(weight.T) else "strided"


def work(call: Call) -> Work:
    """The matrix is read once; compared with it the vectors are small."""
    rows, cols, count = (call.sizes[name] for name in ("rows", "cols", "count"))
    size = getattr(torch, call.dtype).itemsize
    small = getattr(torch, str(call.settings["x"])).itemsize
    return Work(bytes=rows * cols * size + count * (rows + cols) * small)


def compare(
    expected: Tensor, found: Tensor, weight: Tensor, x: Tensor, scale: Tensor | None
) -> str | None:
    """Say what differs: numbers beyond rounding, and which of them are finite."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return (
            f"the result is {found.dtype} {tuple(found.shape)} and should be "
            f"{expected.dtype} {tuple(expected.shape)}"
        )
    finite = expected.isfinite()
    if not torch.equal(finite, found.isfinite()):
        return "other numbers are NaN or Inf"
    right, got = expected[finite].double(), found[finite].double()
    # Results may cancel; rounding is measured against what was summed.
    size = _size_of_terms(weight, x, scale)[finite].norm()
    error = float((got - right).norm() / size) if size > 0 else float(got.abs().sum())
    forgiven = _FORGIVEN.get(x.dtype, _FORGIVEN_ROUGH)
    if weight.dtype == torch.int8:
        forgiven = max(forgiven, _FORGIVEN_INT8)
    return f"the relative error is {error:.2g}" if error > forgiven else None


def _size_of_terms(weight: Tensor, x: Tensor, scale: Tensor | None) -> Tensor:
    squares = torch.nan_to_num(weight.double()) ** 2
    if scale is not None:
        squares = squares * scale.double()[:, None] ** 2
    return (torch.nan_to_num(x.double()) ** 2 @ squares.T).sqrt()


def excerpt(weight: Tensor, x: Tensor, scale: Tensor | None) -> tuple[Any, ...]:
    """The first rows of the matrix, as many as are quickly computed in float64."""
    rows = max(1, min(weight.shape[0], _MOST_COMPARED // weight.shape[1]))
    return weight[:rows], x, None if scale is None else scale[:rows]


def sample(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
    *,
    count: int,
    columns: bool,
) -> tuple[Any, ...]:
    """Random numbers, the same on every run."""
    if len(shape) != 2 or min(shape) < 1:
        raise ArgumentError(f"`shape` {shape} must be two sizes of at least 1: rows, cols")
    if count < 1:
        raise ArgumentError(f"`count` is {count}; expected at least 1")
    draw = torch.Generator().manual_seed(0)
    stored = shape[::-1] if columns else shape
    weight = torch.randn(stored, generator=draw)
    scale = torch.full((shape[0],), 0.03, device=device) if dtype == torch.int8 else None
    weight = (weight * 30 if dtype == torch.int8 else weight).to(dtype).to(device)
    x = torch.randn((count, shape[1]), generator=draw)
    x = x.to(device, dtype if dtype.is_floating_point else torch.float32)
    return (weight.T if columns else weight), x, scale


GEMV = Op(
    name="gemv",
    reference=reference,
    candidates=CANDIDATES,
    describe=describe,
    work=work,
    compare=compare,
    sample=sample,
    options={"count": 1, "columns": False},
    excerpt=excerpt,
)
"""A matrix times a few vectors: the reference, the candidates, and facts for the tuner."""

tuned_gemv = Tuned(GEMV)
"""Gemv through the fastest candidate; arguments are positional and checked before."""
