"""Sources made of sources: a part, a split, several in a row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotgrid.data._plan import ColumnType, Samples, Source, source
from hotgrid.errors import ArgumentError

from ._arrow import column_named


@source("selection")
@dataclass(frozen=True)
class Selected(Source):
    """Some samples of a source: a range, chosen numbers, or those with certain values.

    The conditions are combined: first `numbers`, then `start`, `stop` and `every`, then
    the values of a column.

    Args:
        of: The source.
        start: The first sample.
        stop: The sample before which it ends; None is the end.
        every: Take every Nth sample.
        numbers: Choose samples by number, in this order; None chooses all.
        column: A column whose values choose, such as a label.
        values: The values of that column to take.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("labels").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 4, 7, 9, 7, 5]))
        >>> sevens = Selected(IdxFiles({"label": "labels"}), column="label", values=(7,))
        >>> len(sevens.open())
        2
    """

    of: Source
    start: int = 0
    stop: int | None = None
    every: int = 1
    numbers: tuple[int, ...] | None = None
    column: str = ""
    values: tuple[int | float | str | bool, ...] = ()

    def columns(self) -> dict[str, ColumnType]:
        """Return the columns of the source."""
        return self.of.columns()

    def __str__(self) -> str:
        return f"{self.kind} of {self.of}"

    def open(self) -> Samples:
        """Open the source and choose.

        Raises:
            ArgumentError: Nothing is chosen, or a number or column does not exist.
        """
        opened = self.of.open()
        chosen = np.arange(len(opened))
        if self.numbers is not None:
            chosen = np.array(self.numbers, np.int64)
            wrong = chosen[(chosen < 0) | (chosen >= len(opened))]
            if len(wrong):
                raise ArgumentError(
                    f"`numbers` has {wrong[0]}; {self.of} has samples 0 to {len(opened) - 1}"
                )
        if self.every < 1:
            raise ArgumentError(f"`every` must be at least 1, got {self.every}")
        chosen = chosen[self.start : self.stop : self.every]
        if self.column:
            column_named(self.column, [*self.columns()], str(self.of))
            kind = self.columns()[self.column]
            if kind.shape:
                raise ArgumentError(
                    f"column `{self.column}` is {kind}, of which `values` cannot choose; use a "
                    "column of single values"
                )
            found = opened.values(self.column)
            # JSON may be a list or a dict, which a set does not take.
            wanted = self.values if kind.kind == "json" else {*self.values}
            chosen = np.array([n for n in chosen if found[n] in wanted], np.int64)
        if not len(chosen):
            raise ArgumentError(f"nothing is selected of {self.of}, which has {len(opened)}")
        return _Chosen(opened, chosen)


@source("split")
@dataclass(frozen=True)
class Split(Source):
    """A part of a random split of a source. The parts of a split share no sample.

    Args:
        of: The source.
        shares: The share of every part, such as 0.9 and 0.1; together at most 1.
        part: Which part, from 0.
        seed: Another seed, another split.

    Raises:
        ArgumentError: The shares are not positive or more than all, or there is no such part.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("labels").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 4, 7, 9, 7, 5]))
        >>> whole = IdxFiles({"label": "labels"})
        >>> [len(Split(whole, (0.75, 0.25), part).open()) for part in (0, 1)]
        [3, 1]
    """

    of: Source
    shares: tuple[float, ...]
    part: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.shares or min(self.shares) <= 0 or sum(self.shares) > 1 + 1e-9:
            raise ArgumentError(
                f"`shares` {self.shares} are not positive numbers that sum to at most 1"
            )
        if not 0 <= self.part < len(self.shares):
            raise ArgumentError(f"`part` {self.part} is not one of {len(self.shares)}, from 0")

    def columns(self) -> dict[str, ColumnType]:
        """Return the columns of the source."""
        return self.of.columns()

    def __str__(self) -> str:
        return f"{self.kind} {self.part} of {self.of}"

    def open(self) -> Samples:
        """Open the source and choose.

        Raises:
            ArgumentError: The part has no sample.
        """
        from hotgrid.cluster import shard_of

        opened = self.of.open()
        order = shard_of(len(opened), 0, 1, seed=self.seed).numpy()
        cuts = np.round(np.cumsum([0.0, *self.shares]) * len(opened)).astype(int)
        chosen = np.sort(order[cuts[self.part] : cuts[self.part + 1]])
        if not len(chosen):
            raise ArgumentError(f"part {self.part} of {self.of}, of {len(opened)}, is empty")
        return _Chosen(opened, chosen)


@source("concatenation")
@dataclass(frozen=True)
class Concatenated(Source):
    """The samples of several sources, one source after the other.

    Columns that all have with the same type remain; their sizes may differ.

    Args:
        of: The sources.

    Raises:
        ArgumentError: There is none, or they share no column.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("labels").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 4, 7, 9, 7, 5]))
        >>> len(Concatenated((IdxFiles({"label": "labels"}),) * 3).open())
        12
    """

    of: tuple[Source, ...]

    def columns(self) -> dict[str, ColumnType]:
        """Return the columns that all sources have."""
        if not self.of:
            raise ArgumentError("`of` names no source to concatenate")
        first, *others = (each.columns() for each in self.of)
        found = {}
        for name, kind in first.items():
            kinds = [kind, *(each[name] for each in others if name in each)]
            same = {(each.kind, len(each.shape)) for each in kinds}
            if len(kinds) == len(self.of) and len(same) == 1:
                sizes = zip(*(each.shape for each in kinds), strict=True)
                found[name] = ColumnType(
                    kind.kind, tuple(s[0] if len({*s}) == 1 else None for s in sizes)
                )
        if not found:
            raise ArgumentError(f"{' and '.join(map(str, self.of))} share no column")
        return found

    def __str__(self) -> str:
        return f"{self.kind} of {' and '.join(map(str, self.of))}"

    def open(self) -> Samples:
        """Open all sources."""
        self.columns()
        return _Chain([each.open() for each in self.of])


class _Chosen(Samples):
    def __init__(self, of: Samples, numbers: NDArray[np.int64]) -> None:
        self._of, self._numbers = of, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def read(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        return self._of.read(int(self._numbers[index]), columns)

    def values(self, column: str) -> list[Any]:
        every = self._of.values(column)
        return [every[n] for n in self._numbers]

    def place(self, index: int) -> str:
        return self._of.place(int(self._numbers[index]))

    @property
    def facts(self) -> dict[str, Any]:
        return self._of.facts


class _Chain(Samples):
    def __init__(self, of: Sequence[Samples]) -> None:
        self._of = of
        self._ends = np.cumsum([len(each) for each in of])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def _find(self, index: int) -> tuple[Samples, int]:
        part = int(np.searchsorted(self._ends, index, "right"))
        return self._of[part], index - (int(self._ends[part - 1]) if part else 0)

    def read(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        part, inner = self._find(index)
        return part.read(inner, columns)

    def values(self, column: str) -> list[Any]:
        return [value for each in self._of for value in each.values(column)]

    def place(self, index: int) -> str:
        part, inner = self._find(index)
        return part.place(inner)

    @property
    def facts(self) -> dict[str, Any]:
        first = self._of[0].facts
        return first if all(each.facts == first for each in self._of) else {}
