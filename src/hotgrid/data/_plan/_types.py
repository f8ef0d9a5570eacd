"""The types of columns: a kind, and for numbers a shape whose sizes may be open."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotgrid.errors import ArgumentError, near

_NUMBERS = (
    "bool uint8 uint16 int8 int16 int32 int64 float16 float32 float64".split()  # noqa: SIM905
)
_OBJECTS = {"bytes": bytes, "text": str, "json": object, "any": object}
_TEXT = re.compile(r"(\w+)(?:\[([\d?,\s]*)\])?")


@dataclass(frozen=True)
class ColumnType:
    """The type of a column, written as `bytes`, `text`, `int64` or `uint8[?,?,3]`.

    Args:
        kind: `bytes`, `text`, `json`, `any`, or the name of a numpy number.
        shape: The sizes of one value; None is a size that differs between samples.

    Raises:
        ArgumentError: There is no such kind, or it has no shape.

    Example:
        >>> image = ColumnType.of("uint8[?,?,3]")
        >>> image.accepts(ColumnType.of("uint8[224,224,3]"))
        True
        >>> print(ColumnType("int64"), image.fixed)
        int64 False
    """

    kind: str
    shape: tuple[int | None, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in _NUMBERS and self.kind not in _OBJECTS:
            known = [*_OBJECTS, *_NUMBERS]
            raise ArgumentError(
                f"`{self.kind}` is not a type of a column"
                f"{near(self.kind, known) or '; there are ' + ', '.join(known)}"
            )
        if self.shape and self.kind in _OBJECTS:
            raise ArgumentError(f"a column of `{self.kind}` has no shape; remove {self.shape}")

    @classmethod
    def of(cls, text: "str | ColumnType") -> "ColumnType":
        """Read a type from its text."""
        if isinstance(text, cls):
            return text
        found = _TEXT.fullmatch(str(text).strip())
        if found is None:
            raise ArgumentError(
                f"`{text}` is not a type of a column; write one as int64 or uint8[?,?,3]"
            )
        kind, sizes = found.groups()
        parts = [each.strip() for each in (sizes or "").split(",") if each.strip()]
        if not all(each == "?" or each.isdigit() for each in parts):
            raise ArgumentError(f"`{text}`: a size is a number, or ? if it differs")
        return cls(kind, tuple(None if each == "?" else int(each) for each in parts))

    def __str__(self) -> str:
        if not self.shape:
            return self.kind
        return f"{self.kind}[{','.join('?' if n is None else str(n) for n in self.shape)}]"

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """The numpy type of a column of numbers; None for objects."""
        return np.dtype(self.kind) if self.kind in _NUMBERS else None

    @property
    def fixed(self) -> bool:
        """Whether all values have the same number of bytes: numbers of a known shape."""
        return self.kind in _NUMBERS and None not in self.shape

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes that are known; of a fixed type, its whole shape."""
        return tuple(size for size in self.shape if size is not None)

    def accepts(self, other: "ColumnType") -> bool:
        """Whether every value of the other type is one of this type."""
        if self.kind == "any":
            return True
        return (
            self.kind == other.kind
            and len(self.shape) == len(other.shape)
            and all(
                mine in (None, its) for mine, its in zip(self.shape, other.shape, strict=True)
            )
        )

    def array(self, value: Any) -> Any:
        """A value that JSON held: numbers with a shape as an array, others as they are."""
        return np.asarray(value, self.dtype) if self.shape else value

    def problem(self, value: Any) -> str | None:
        """Why a value is not valid in this column; None if it is."""
        if self.kind in _OBJECTS:
            right = isinstance(value, _OBJECTS[self.kind])
            return None if right else f"a {type(value).__name__} instead of {self}"
        try:
            found = np.asarray(value)
        except ValueError:
            return f"values of different lengths instead of {self}"
        if found.dtype.kind not in "biuf":
            return f"{str(value)[:40]!r} instead of {self}"
        sizes = found.shape
        if len(sizes) != len(self.shape) or any(
            mine not in (None, its) for mine, its in zip(self.shape, sizes, strict=True)
        ):
            return f"a shape of {list(sizes)} instead of {self}"
        if self.dtype is not None and found.dtype != self.dtype and _changes(found, self.dtype):
            return f"{str(value)[:40]}, which {self} cannot hold"
        return None


def _changes(found: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Whether numbers would lose more than digits in another type."""
    if found.dtype.kind == "b" or dtype.kind == "b":
        return found.dtype.kind != dtype.kind
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return bool((np.isfinite(found) & ~np.isfinite(found.astype(dtype))).any())
    limits = np.iinfo(dtype)
    inside = (found >= limits.min) & (found <= limits.max) & (found == np.floor(found))
    return not bool(inside.all())
