"""Candidates made of torch's own operations."""

import torch
import torch.nn.functional as F
from torch import Tensor

from hotgrid.kernels.tune import Call, Candidate


def _matmul(weight: Tensor, x: Tensor, scale: Tensor | None) -> Tensor:
    return torch.matmul(x, weight.T)


def _linear(weight: Tensor, x: Tensor, scale: Tensor | None) -> Tensor:
    return F.linear(x, weight)


def _vector(weight: Tensor, x: Tensor, scale: Tensor | None) -> Tensor:
    return torch.mv(weight, x[0])[None]


def converted_product(weight: Tensor, x: Tensor, scale: Tensor | None) -> Tensor:
    """Return the product with the weight as f32 or wider: what there is where types differ."""
    wide = torch.promote_types(torch.float32, x.dtype)
    y = x.to(wide) @ weight.to(wide).T
    return (y if scale is None else y * scale.to(wide)).to(x.dtype)


def _same_type(call: Call) -> bool:
    return call.dtype == call.settings["x"]


MATMUL = Candidate(name="matmul", function=_matmul, applies=_same_type)
LINEAR = Candidate(name="linear", function=_linear, applies=_same_type)
VECTOR = Candidate(
    name="mv",
    function=_vector,
    applies=lambda call: _same_type(call) and call.sizes["count"] == 1,
)
TORCHS = (_matmul, _linear, _vector)
"""Functions of candidates that are products of torch's own."""
# Beside the others it only wastes time.
CONVERTED = Candidate(
    name="converted",
    function=converted_product,
    priority=lambda call: -1 if _same_type(call) and call.dtype == "float32" else 0,
)
