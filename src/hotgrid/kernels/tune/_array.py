"""Arguments that every op asks for: plain arrays."""

from typing import Any

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError


def expect_array(name: str, value: Any) -> None:
    """Do nothing if a value is a tensor whose elements lie in memory, strided.

    Raises:
        ArgumentError: It is no tensor, or a sparse, nested or otherwise packed one.
    """
    if not isinstance(value, Tensor):
        raise ArgumentError(
            f"`{name}` must be a tensor, got {type(value).__name__}: use `torch.as_tensor(...)`"
        )
    if value.is_nested:
        raise ArgumentError(f"`{name}` is a nested tensor: use its parts, `{name}.unbind()`")
    if value.layout is not torch.strided:
        raise ArgumentError(f"`{name}` has the layout {value.layout}; use `{name}.to_dense()`")
