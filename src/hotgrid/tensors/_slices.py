"""Python slices that can be written as text, printed, bound to a shape and iterated."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import EllipsisType
from typing import TypeAlias

from torch import Tensor

from hotgrid.errors import ArgumentError, DimensionError

from ._arguments import expect_shape, expect_tensor, shown

SliceItem: TypeAlias = int | slice | EllipsisType
SlicesLike: TypeAlias = "str | SliceItem | tuple[SliceItem, ...] | Slices"

_LOWEST, _HIGHEST = -(2**62) + 1, sys.maxsize  # what torch slices with, open ends included
_STEP = (
    "a step must be 1 or more and below 2**62 "
    "(to walk backwards, slice forward and then `.flip(dim)`)"
)
_TWICE = "`...` may occur only once"


class Slices:
    """The text between the brackets of `x[1:-1, ::2, ..., 3]`, as a value.

    Written as text or as Python slices; `str()` gives the text back. Immutable,
    comparable, hashable. The text knows ints, `start:stop:step` and `...`; steps
    are positive, because torch cannot index backwards.

    Args:
        spec: Text such as `"1:-1, ::2, ..., 3"`, or an int, a slice, `...`, a tuple
            of these, or `Slices`.

    Attributes:
        index: The same as a tuple of ints, slices and `...`: `x[slices.index]`.

    Raises:
        ArgumentError: The text has a syntax error (a caret shows where), a step is
            below 1, or an item is not a slice.

    Example:
        >>> inner = Slices("1:-1, ::2, ..., 3")
        >>> inner(torch.zeros(5, 6, 7, 8)).shape
        torch.Size([3, 3, 7])
        >>> print(inner.bound_to((5, 6, 7, 8)))
        1:4, 0:6:2, 0:7, 3
        >>> list(Slices("1:3, -1").bound_to((4, 5)))
        [(1, 4), (2, 4)]
    """

    __slots__ = ("_index",)

    def __init__(self, spec: SlicesLike) -> None:
        self._index = index_of(spec)

    @property
    def index(self) -> tuple[SliceItem, ...]:
        """The selection as Python writes it: `x[slices.index]`."""
        return self._index

    def __call__(self, x: Tensor) -> Tensor:
        """Return `x[self.index]`, a view. Raises DimensionError where it does not fit."""
        return x[fit(self._index, expect_tensor("`x`", x).shape)]

    def bound_to(self, shape: Sequence[int]) -> Slices:
        """Return the same selection for one shape, with every dim, start and stop written out.

        Raises:
            ArgumentError: `shape` is not a sequence of sizes.
            DimensionError: More items than dims, or an int out of range.
        """
        shape = expect_shape("shape", shape)
        return Slices(
            tuple(
                item % n if isinstance(item, int) else _closed(item, n)
                for item, n in zip(fit(self._index, shape), shape, strict=True)
            )
        )

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        """Yield the multi-indices selected, in row-major order, as tuples of ints.

        Raises:
            ArgumentError: The end is open or counted backwards; use `bound_to` first.
        """
        return _walk([_range(self, item) for item in self._index])

    def __str__(self) -> str:
        return text_of(self._index)

    def __repr__(self) -> str:
        return f"Slices({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return self._index == other._index if isinstance(other, Slices) else NotImplemented

    def __hash__(self) -> int:
        # Python slices have no hash before 3.12; their text has.
        return hash(str(self))


def index_of(spec: SlicesLike) -> tuple[SliceItem, ...]:
    """Return the checked index that `spec` means."""
    if isinstance(spec, Slices):
        return spec.index
    if isinstance(spec, str):
        return _parse(spec)
    index = spec if isinstance(spec, tuple) else (spec,)
    for item in index:
        if not _is_item(item):
            raise ArgumentError(
                f"{shown(item)} is not a slice: use an int that torch can hold, a slice, "
                "`...` or text like '1:-1, ::2'"
            )
        if isinstance(item, slice) and not _may_step(item.step):
            raise ArgumentError(f"`{_item_text(item)}`: {_STEP}")
    if _ellipses(index) > 1:
        raise ArgumentError(f"`{text_of(index)}`: {_TWICE}")
    return index


def fit(index: tuple[SliceItem, ...], shape: Sequence[int]) -> tuple[int | slice, ...]:
    """Return one item per dim of `shape`, `...` written out; refuse what does not fit."""
    missing = len(shape) - (len(index) - _ellipses(index))
    if missing < 0:
        raise DimensionError(
            f"`{text_of(index)}` names {len(shape) - missing} dims, but the shape "
            f"{tuple(shape)} has {len(shape)}"
        )
    full: list[int | slice] = []
    for item in index if _ellipses(index) else (*index, ...):
        if isinstance(item, EllipsisType):
            full.extend([slice(None)] * missing)
        else:
            full.append(item)
    for dim, (item, n) in enumerate(zip(full, shape, strict=True)):
        if isinstance(item, int) and not -n <= item < n:
            raise DimensionError(
                f"`{text_of(index)}`: {item} is out of range at dim {dim} of the shape "
                f"{tuple(shape)}"
            )
    return tuple(full)


def text_of(index: tuple[SliceItem, ...]) -> str:
    """Return the text that parses to `index`. Nothing selects everything: `...`."""
    return ", ".join([_item_text(item) for item in index]) or "..."


def _item_text(item: SliceItem) -> str:
    if isinstance(item, slice):
        start, stop, step = ["" if part is None else str(part) for part in _parts(item)]
        return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"
    return "..." if isinstance(item, EllipsisType) else str(item)


def _is_item(item: object) -> bool:
    if isinstance(item, slice):
        return all(part is None or _is_int(part) for part in _parts(item))
    return isinstance(item, EllipsisType) or _is_int(item)


def _is_int(item: object) -> bool:
    if isinstance(item, bool) or not isinstance(item, int):
        return False
    return _LOWEST <= item <= _HIGHEST


def _may_step(step: int | None) -> bool:
    # torch adds the step to the size, which must not overflow.
    return step is None or 1 <= step <= -_LOWEST


def _parts(item: slice) -> tuple[int | None, int | None, int | None]:
    return item.start, item.stop, item.step


def _ellipses(index: tuple[SliceItem, ...]) -> int:
    # `is ...` would make torch.compile fix the numbers of a slice it compares.
    return len([item for item in index if isinstance(item, EllipsisType)])


def _closed(item: slice, n: int) -> slice:
    start, stop, step = item.indices(n)
    return slice(start, max(start, stop), None if step == 1 else step)


def _range(slices: Slices, item: SliceItem) -> range:
    if isinstance(item, int) and item >= 0:
        return range(item, item + 1)
    if isinstance(item, slice):
        start, stop, step = _parts(item)
        if (start or 0) >= 0 and stop is not None and stop >= 0:
            return range(start or 0, stop, step or 1)
    raise ArgumentError(
        f"`{slices}` cannot be walked without a shape, because of `{_item_text(item)}`: "
        "use `.bound_to(shape)` first"
    )


def _walk(ranges: list[range]) -> Iterator[tuple[int, ...]]:
    # itertools.product would first store every range as a tuple.
    if not ranges:
        yield ()
        return
    for i in ranges[0]:
        for rest in _walk(ranges[1:]):
            yield (i, *rest)


def _parse(text: str) -> tuple[SliceItem, ...]:
    # Only plain string methods: torch.compile follows them, and not regular expressions.
    index: list[SliceItem] = []
    place = 0
    for part in text.split(","):
        item = _parse_item(text, place, part)
        if isinstance(item, EllipsisType) and ... in index:
            raise _badly_written(text, place + part.index("."), _TWICE)
        index.append(item)
        place += len(part) + 1
    return tuple(index)


def _parse_item(text: str, place: int, part: str) -> SliceItem:
    if part.strip() == "...":
        return ...
    fields = part.split(":")
    if len(fields) == 1:
        number = _parse_int(text, place, part)
        if number is None:
            raise _badly_written(text, place, "expected an int, a slice or `...`")
        return number
    numbers: list[int | None] = []
    for order, field in enumerate(fields):
        if order == 3:
            raise _badly_written(text, place - 1, "a slice has at most two colons")
        number = _parse_int(text, place, field)
        if order == 2 and not _may_step(number):
            raise _badly_written(text, place + _indent(field), _STEP)
        numbers.append(number)
        place += len(field) + 1
    return slice(*numbers)


def _parse_int(text: str, place: int, field: str) -> int | None:
    word = field.strip()
    if not word:
        return None
    digits = word[1:] if word[0] in "+-" else word
    if not (digits.isascii() and digits.isdigit()):
        raise _badly_written(text, place + _indent(field), f"{word!r} is not an int")
    digits = digits.lstrip("0") or "0"
    # Twenty digits are beyond the limit already, and Python refuses to read thousands.
    number = int(digits[:20]) * (-1 if word[0] == "-" else 1)
    if not _LOWEST <= number <= _HIGHEST:
        raise _badly_written(text, place + _indent(field), "the int is too large for torch")
    return number


def _indent(field: str) -> int:
    return len(field) - len(field.lstrip())


def _badly_written(text: str, place: int, reason: str) -> ArgumentError:
    return ArgumentError(f"slices `{text}`: {reason}\n    {text}\n    {' ' * place}^")
