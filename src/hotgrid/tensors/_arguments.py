"""Arguments as callers give them: tensors, whole numbers and shapes, or a clear error."""

import operator
import reprlib
from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex, TypeAlias

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError

WholeNumbers: TypeAlias = SupportsIndex | Sequence[SupportsIndex]

LARGEST = 2**62 - 1
"""The largest size that torch handles in both directions; some 64-bit ints are reserved."""


def shown(value: object) -> str:
    """Return `value` as an error text shows it: short, and without ever failing."""
    if isinstance(value, int) and value.bit_length() > 256:
        # Python refuses to write an int of more than 4300 digits.
        return f"<int of {value.bit_length()} bits>"
    return reprlib.repr(value)


def expect_tensor(argument: str, x: object) -> Tensor:
    """Return `x` if it is a tensor."""
    if isinstance(x, Tensor):
        return x
    raise ArgumentError(
        f"{argument} must be a tensor, got {type(x).__name__}: use `torch.as_tensor(...)`"
    )


def whole_number(argument: str, value: object) -> int:
    """Return `value`, an int or anything else that has `__index__`, as an int."""
    number = value
    if not isinstance(value, int | torch.SymInt):
        try:
            number = operator.index(value)  # pyright: ignore[reportArgumentType]
        except TypeError:
            number = None
    if not isinstance(number, int | torch.SymInt) or isinstance(number, bool):
        raise ArgumentError(f"`{argument}` {shown(value)} must be a whole number")
    if not -LARGEST <= number <= LARGEST:
        raise ArgumentError(
            f"`{argument}` {shown(value)} is too large: torch counts "
            f"from {-LARGEST} to {LARGEST}"
        )
    return number  # pyright: ignore[reportReturnType]


def whole_numbers(argument: str, value: object) -> int | tuple[int, ...]:
    """Return one whole number as an int, or a sequence of them as a tuple."""
    items = items_of(value)
    if items is None:
        return whole_number(argument, value)
    return tuple([whole_number(argument, number) for number in items])


def items_of(value: object) -> tuple[Any, ...] | None:
    """Return the items of a sequence or a 1-D array, or None for anything single."""
    if isinstance(value, int | str) or getattr(value, "ndim", 1) == 0:
        return None
    return tuple(value) if isinstance(value, Iterable) else None


def expect_shape(argument: str, shape: object) -> tuple[int, ...]:
    """Return `shape` as a tuple of sizes, none of them negative."""
    sizes = whole_numbers(argument, shape)
    if not isinstance(sizes, tuple) or any(n < 0 for n in sizes):
        raise ArgumentError(
            f"`{argument}` {shown(shape)} must be a sequence of sizes, each 0 or more"
        )
    return sizes
