"""The candidate made of torch's operations, on every device; it is the oracle too."""

import torch
from torch import Tensor

from hotgrid.kernels.tune import Candidate

from ._coded import Coded


def decoded_product(
    form: str,
    x: Tensor,
    codes: Tensor,
    scale: Tensor,
    table: Tensor | None,
    signs: Tensor | None,
) -> Tensor:
    """Return `x @ matrix.T`, in the type of `x`; only `rows` need not be written out."""
    coded = Coded(form, x.shape[-1], codes, scale, table, signs)
    wide = torch.promote_types(torch.float32, x.dtype)
    if form == "rows":
        y = (x.to(wide) @ coded.centroids().to(wide).T)[..., codes.long()]
    else:
        y = x.to(wide) @ coded.decoded().to(wide).T
    return y.to(x.dtype)


DECODED = Candidate(name="decoded", function=decoded_product)
