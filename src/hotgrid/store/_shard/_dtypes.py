"""The element types that a checkpoint can hold, under the names of safetensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_TORCH_NAMES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
}
_NAMES = {f"torch.{name}": short for short, name in _TORCH_NAMES.items()}


def name_of(dtype: torch.dtype) -> str | None:
    """The name in files, such as `F32`; None if the format has no such type."""
    return _NAMES.get(str(dtype))


def is_known(name: object) -> bool:
    """Whether a name read from a file is one of ours."""
    return isinstance(name, str) and name in _TORCH_NAMES


def dtype_of(name: str) -> torch.dtype:
    """The type of torch that a name in a file means."""
    import torch

    return getattr(torch, _TORCH_NAMES[name])


def bytes_of(name: str, shape: Sequence[int]) -> int:
    """How many bytes a tensor takes."""
    return dtype_of(name).itemsize * math.prod(shape)
