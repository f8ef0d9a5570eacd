"""Numbers of other types and lengths."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hotgrid.data._plan import ColumnType, Operator, operator
from hotgrid.errors import ArgumentError, DamagedError


@operator("length")
@dataclass(frozen=True)
class Length(Operator):
    """Count the letters of a text, the bytes of a file, or the rows of an array."""

    inputs: ClassVar = {"value": "any"}

    def outputs(self, types: Mapping[str, ColumnType]) -> dict[str, ColumnType]:
        """Return the type of the count.

        Raises:
            ArgumentError: The input is a single number.
        """
        if types["value"].dtype is not None and not types["value"].shape:
            raise ArgumentError(f"{types['value']} is a single number, without a length")
        return {"length": ColumnType("int64")}

    def run(self, value: Any) -> int:
        """Count one value."""
        return len(value)


@operator("cast")
@dataclass(frozen=True)
class Cast(Operator):
    """Convert numbers to another type.

    Args:
        to: The name of the type, such as float32.
    """

    inputs: ClassVar = {"value": "any"}
    to: str

    def outputs(self, types: Mapping[str, ColumnType]) -> dict[str, ColumnType]:
        """Return the new type.

        Raises:
            ArgumentError: One of them is not a type of numbers.
        """
        found = ColumnType(self.to, types["value"].shape)
        if found.dtype is None or types["value"].dtype is None:
            raise ArgumentError(f"{types['value']} cannot be cast to {found}")
        return {"value": found}

    def run(self, value: Any) -> Any:
        """Convert one value."""
        return np.asarray(value).astype(self.to)


@operator("pad")
@dataclass(frozen=True)
class Pad(Operator):
    """Make all sequences equally long: fill up at the end, and cut what is longer.

    Args:
        length: The length of the result along the first axis.
        value: What fills up.
        cut: False makes a longer sequence a damaged sample.

    Raises:
        ArgumentError: The length is not possible.
    """

    inputs: ClassVar = {"values": "any"}
    length: int
    value: float = 0.0
    cut: bool = True

    def __post_init__(self) -> None:
        if self.length < 1:
            raise ArgumentError(f"`length` must be at least 1, got {self.length}")

    def outputs(self, types: Mapping[str, ColumnType]) -> dict[str, ColumnType]:
        """Return the type of the result.

        Raises:
            ArgumentError: The input is not an array.
        """
        given = types["values"]
        if not given.shape:
            raise ArgumentError(f"{given} has no axis to pad")
        return {"values": ColumnType(given.kind, (self.length, *given.shape[1:]))}

    def run(self, values: Any) -> Any:
        """Pad one sequence."""
        if len(values) > self.length and not self.cut:
            raise DamagedError(f"{len(values)} values are more than {self.length}")
        found = np.full((self.length, *values.shape[1:]), self.value, values.dtype)
        kept = values[: self.length]
        found[: len(kept)] = kept
        return found
