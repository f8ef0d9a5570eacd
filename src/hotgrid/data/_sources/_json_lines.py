"""JSON lines: an object a line, found again by the place of its first byte."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotgrid.data._plan import ColumnType, Samples, Source, source
from hotgrid.errors import ArgumentError, DamagedError, near

from ._files import OpenFile, OpenFiles, found_files

_CHUNK = 1 << 24


@source("json_lines")
@dataclass(frozen=True)
class JsonLines(Source):
    r"""Files with a JSON object in every line.

    Lines are found once, when it is opened; empty ones are left out. What is on a line is
    parsed when the sample is read.

    Args:
        paths: Files, folders with `.jsonl` files, and patterns.
        types: The keys to read and their types; each is a column.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("a.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
        >>> JsonLines(("a.jsonl",), {"text": "text"}).open().read(1, ["text"])
        {'text': 'two'}
    """

    paths: tuple[str, ...]
    types: dict[str, str]

    def columns(self) -> dict[str, ColumnType]:
        """Return the columns and their types."""
        return {name: ColumnType.of(each) for name, each in self.types.items()}

    def __str__(self) -> str:
        return f"{self.kind} {', '.join(self.paths)}"

    def open(self) -> Samples:
        """Find the lines.

        Raises:
            ArgumentError: There is no file or no line.
        """
        return _Lines(self)


class _Lines(Samples):
    def __init__(self, given: JsonLines) -> None:
        self._types = given.columns()
        self._files = OpenFiles(found_files(given.paths, (".jsonl", ".ndjson", ".json")))
        spans = [_lines(self._files[number]) for number in range(len(self._files.paths))]
        self._spans = np.concatenate(spans)
        self._ends = np.cumsum([len(each) for each in spans])
        if not len(self._spans):
            raise ArgumentError(f"`{self._files.paths[0]}` has no line")

    def __len__(self) -> int:
        return len(self._spans)

    def read(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        file, (begin, size) = self._file(index), self._spans[index].tolist()
        try:
            row = json.loads(file.read(begin, size))
        except (ValueError, RecursionError) as problem:
            raise DamagedError(f"it is not a line of JSON: {problem}") from None
        if not isinstance(row, dict):
            raise DamagedError(f"the line is {str(row)[:40]!r}, not a JSON object")
        found = {}
        for name in columns:
            if name not in row:
                has = near(name, row) or f"; it has {', '.join(row) or 'none'}"
                raise DamagedError(f"the line has no `{name}`{has}")
            wrong = self._types[name].problem(row[name])
            if wrong:
                raise DamagedError(f"column `{name}` is {wrong}")
            found[name] = self._types[name].array(row[name])
        return found

    def place(self, index: int) -> str:
        return f"{self._file(index).path} at byte {self._spans[index][0]}"

    def _file(self, index: int) -> OpenFile:
        return self._files[int(np.searchsorted(self._ends, index, "right"))]


def _lines(file: OpenFile) -> NDArray[np.int64]:
    """First byte and length of every line that is not empty, [n, 2]."""
    ends = []
    for at in range(0, file.size, _CHUNK):
        data = np.frombuffer(file.read(at, min(_CHUNK, file.size - at)), np.uint8)
        ends.append(np.flatnonzero(data == ord("\n")) + at)
    cuts = np.concatenate([*ends, [file.size]]) if ends else np.array([0])
    begins = np.concatenate([[0], cuts[:-1] + 1])
    sizes = cuts - begins
    # A line of a carriage return, or of a few spaces, is looked at.
    short = [
        i
        for i in np.flatnonzero((sizes > 0) & (sizes < 4))
        if _blank(file, begins[i], sizes[i])
    ]
    sizes[short] = 0
    return np.stack([begins, sizes], 1)[sizes > 0].astype(np.int64)


def _blank(file: OpenFile, begin: Any, size: Any) -> bool:
    return file.read(int(begin), int(size)).isspace()
