"""The product with a coded matrix, as the tuner sees it."""

import math
from typing import Any

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.kernels.tune import Call, Candidate, Op, Tuned, Work

from ._arguments import checked_parts
from ._coded import Coded
from ._core import CORE
from ._learn._fit import FORMS, RECIPES
from ._triton import CODED_GPU

# Relative error of a whole result beside the decoded matrix: x in 14 or 8 bits, or products
# in 8 bits of the largest in a chunk of tables.
_FORGIVEN = {"int8": 1e-3, "rows": 1e-3, "int4": 0.02, "pq": 0.04}
_FORGIVEN_BF16 = 0.01


def decoded_product(form: str, x: Tensor, *parts: Any) -> Tensor:
    """Return `x @ matrix.T`, in the type of `x`, by torch's operations: the reference."""
    coded = Coded(form, x.shape[-1], *parts)
    wide = torch.promote_types(torch.float32, x.dtype)
    if form == "rows":  # need not be written out
        y = (x.to(wide) @ coded.centroids().to(wide).T)[..., coded.codes.long()]
    else:
        y = x.to(wide) @ coded.decoded().to(wide).T
    return y.to(x.dtype)


# Candidates of equal priority are tried in this order.
CANDIDATES = (CORE, CODED_GPU, Candidate(name="decoded", function=decoded_product))


def describe(form: str, x: Tensor, *parts: Tensor | None) -> Call:
    """Describe a call: a form, its matrix `[rows, cols]` and `count` vectors."""
    # Depends on types and shapes only, so it is cached by these.
    coded = checked_parts(form, x, *parts)
    _, _, table, signs = parts
    books = () if table is None or table.ndim != 3 else tuple(table.shape[:2])
    return Call(
        op="codebook",
        dtype=str(x.dtype).removeprefix("torch."),
        device=x.device,
        layout=form,
        sizes={"rows": coded.rows, "cols": x.shape[1], "count": x.shape[0]},
        settings={"books": "x".join(map(str, books)) or 1, "rotated": signs is not None},
    )


_BITS = {"rows": 0.1, "pq": 4.0, "int4": 4.25, "int8": 8.0}


def work(call: Call) -> Work:
    """Codes are read once."""
    matrix, bits = call.sizes["rows"] * call.sizes["cols"], _BITS[call.layout]
    books, _, width = str(call.settings["books"]).partition("x")
    if width:
        bits = 4 * int(books) / int(width)
    return Work(bytes=matrix * bits / 8 + 4 * call.sizes["rows"])


def compare(
    expected: Tensor, found: Tensor, form: str, x: Tensor, *parts: Tensor | None
) -> str | None:
    """Say what differs: numbers beyond rounding, and which vectors are finite."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return (
            f"the result is {found.dtype} {tuple(found.shape)} and should be "
            f"{expected.dtype} {tuple(expected.shape)}"
        )
    finite = x.isfinite().all(1)
    if bool(found[~finite].isfinite().any()) or not bool(found[finite].isfinite().all()):
        return "other vectors are NaN or Inf"
    right, got = expected[finite].double(), found[finite].double()
    # Results may cancel; rounding is measured against what was summed.
    matrix = checked_parts(form, x, *parts).decoded()
    terms = x[finite].double().square() @ matrix.double().square().T
    size, wrong = float(terms.sum().sqrt()), float((got - right).norm())
    forgiven = _FORGIVEN[form] + (_FORGIVEN_BF16 if x.dtype == torch.bfloat16 else 0)
    if wrong > forgiven * size + 1e-30:
        return f"the relative error is {wrong / max(size, 1e-30):.2g}"
    return None


def sample(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
    *,
    form: str,
    bits: float,
    count: int,
) -> tuple[Any, ...]:
    """A random matrix, coded; the same on every run."""
    if len(shape) != 2 or min(shape) < 1 or count < 1:
        raise ArgumentError(
            f"`shape` {shape} must be rows and cols, and `count` {count} at least 1"
        )
    fits = [each for each in RECIPES if each.form == form]
    if not fits:
        raise ArgumentError(f"`form` {form!r} must be one of {', '.join(FORMS)}")
    if not 0 < bits < math.inf:
        raise ArgumentError(f"`bits` is {bits}; expected a positive number")
    recipe = min(fits, key=lambda each: abs(each.bits - bits))
    draw = torch.Generator().manual_seed(0)
    weight = torch.randn(shape, generator=draw)
    made = recipe.fit(weight, torch.ones(shape[1]), None)
    x = torch.randn((count, shape[1]), generator=draw).to(device, dtype)
    return form, x, *(part if part is None else part.to(device) for _, part in made.parts)


CODEBOOK = Op(
    name="codebook",
    reference=decoded_product,
    candidates=CANDIDATES,
    describe=describe,
    work=work,
    compare=compare,
    sample=sample,
    options={"form": "pq", "bits": 4.0, "count": 1},
)
"""A coded matrix times a few vectors; its arguments are the form, `x`, and the parts."""

tuned_codebook = Tuned(CODEBOOK)
"""The product through the fastest candidate; arguments are positional and checked before."""
