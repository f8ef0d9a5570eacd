"""The layout of safetensors files, written by hand so that the same content is the same bits.

The library keeps metadata in a hash table, whose order changes from run to run.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

WIDTHS = {"I64": 8, "F32": 4, "I32": 4, "F16": 2, "U8": 1}
"""Bytes of a value, by dtype."""
_KINDS = {"<i8": "I64", "<f4": "F32", "<i4": "I32", "<f2": "F16", "|u1": "U8"}


def header(
    tensors: Sequence[tuple[str, str, Sequence[int]]], metadata: Mapping[str, str]
) -> bytes:
    """The header before the bytes of tensors, which follow in the same order.

    Args:
        tensors: Name, dtype and shape of each; wider dtypes first, so that all are aligned.
        metadata: Texts.
    """
    table: dict[str, Any] = {"__metadata__": dict(metadata)}
    end = 0
    for name, kind, shape in tensors:
        begin, end = end, end + math.prod(shape) * WIDTHS[kind]
        table[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(table, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def safetensors(tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> bytes:
    """A whole file."""
    order = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    kinds = [(name, _KINDS[tensors[name].dtype.str], tensors[name].shape) for name in order]
    return header(kinds, metadata) + b"".join(tensors[name].tobytes() for name in order)
