"""The product with a coded matrix on a GPU: codes are read once, and nothing is written out."""

from collections.abc import Callable
from functools import partial

from torch import Tensor

from hotgrid.kernels.tune import TRITON, Call, Candidate, Faults

from ._coded import rotated

# Sums of more vectors no longer fit in the registers of a thread.
_MOST = 8
_KINDS = frozenset(("float32", "bfloat16", "float16"))


def _applies(call: Call) -> bool:
    rows, cols, count = (call.sizes[name] for name in ("rows", "cols", "count"))
    fits = count <= _MOST and count * max(rows, cols) < 2**30
    return fits and call.dtype in _KINDS


def _product(
    checked: bool,
    form: str,
    x: Tensor,
    codes: Tensor,
    scale: Tensor,
    table: Tensor | None,
    signs: Tensor | None,
) -> Tensor:
    vectors = x.contiguous() if signs is None else rotated(x.float(), signs)
    codes, scale = codes.contiguous(), scale.contiguous()
    if form == "int8":
        return _bytes(checked, vectors, codes, scale)
    table = None if table is None else table.contiguous()
    y = _multiply(form, table)(x.dtype, vectors, codes, scale, table, checked)
    return y if y.ndim == 2 else y.sum(0).to(x.dtype)


def _multiply(form: str, table: Tensor | None) -> Callable[..., Tensor]:
    """Return the function that has a form's kernel, importing no other."""
    if form == "rows":
        from ._triton_rows import repeated_rows

        return repeated_rows
    if table is not None and table.ndim == 3:
        from ._triton_subvectors import subvectors_times_vectors

        return subvectors_times_vectors
    from ._triton_nibbles import nibbles_times_vectors

    return nibbles_times_vectors


def _bytes(checked: bool, x: Tensor, codes: Tensor, scale: Tensor) -> Tensor:
    from hotgrid.kernels._gemv._triton_gemv import matrix_times_vectors

    if not checked:
        return matrix_times_vectors(codes, x, scale)
    # The matrix may be split into as many parts as keep a GPU busy.
    sizes = {"codes": codes.numel(), "x": x.numel(), "sums": codes.numel() * x.shape[0]}
    faults = Faults("codebook.triton", sizes | {"scale": scale.numel()}, x.device)
    y = matrix_times_vectors(codes, x, scale, faults=faults)
    faults.expect_none()
    return y


CODED_GPU = Candidate(
    name="triton",
    function=partial(_product, False),
    applies=_applies,
    group=TRITON,
    checked=partial(_product, True),
)
