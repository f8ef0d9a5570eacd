"""Weights in 8 bits, for models that travel: a scale for every output channel."""

from collections.abc import Mapping

import torch
from torch import Tensor

_SCALE = ".int8_scale"


def to_int8(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return weights with matrices and kernels in 8 bits.

    Example:
        >>> small = to_int8({"w": torch.eye(2), "b": torch.ones(2)})
        >>> {name: str(each.dtype) for name, each in small.items()}
        {'w': 'torch.int8', 'w.int8_scale': 'torch.float32', 'b': 'torch.float32'}
    """
    found: dict[str, Tensor] = {}
    for name, each in state.items():
        if each.ndim < 2 or not each.is_floating_point():
            found[name] = each
            continue
        rows = each.to(torch.float32).flatten(1)
        scale = (rows.abs().amax(1) / 127.0).clamp(min=1e-12)
        codes = (rows / scale[:, None]).round().clamp(-127, 127).to(torch.int8)
        found[name] = codes.view(each.shape)
        found[name + _SCALE] = scale
    return found


def from_int8(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return weights as float32, from those of `to_int8` or from others, unchanged."""
    found = {}
    for name, each in state.items():
        if name.endswith(_SCALE):
            continue
        scale = state.get(name + _SCALE)
        found[name] = each
        if scale is not None:
            wide = scale.view(-1, *([1] * (each.ndim - 1)))
            found[name] = each.to(torch.float32) * wide
    return found
