"""The oracle of gemv: every product in float64."""

from torch import Tensor


def reference(weight: Tensor, x: Tensor, scale: Tensor | None) -> Tensor:
    """Return `x @ weight.T`, the rows of `weight` times `scale`, in the type of `x`."""
    matrix = weight.double()
    if scale is not None:
        matrix = matrix * scale.double()[:, None]
    return (x.double() @ matrix.T).to(x.dtype)
