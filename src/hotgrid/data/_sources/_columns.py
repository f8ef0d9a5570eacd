"""Columns that were computed once and written: a file for each, mapped into memory."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotgrid.data._plan import ColumnType, Samples, Source, source
from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.files import read_regular, regular_stat

from ._arrow import Rows

FORMAT = "hotgrid columns 1"
_LARGEST = 1 << 26


@source("columns")
@dataclass(frozen=True)
class CachedColumns(Source):
    """Columns that `cache_columns` has written to a folder.

    Numbers of a fixed shape are `NAME.npy`, all others `NAME.arrow`; both are mapped into
    memory, so that any order costs the same and processes share them.

    Args:
        folder: The folder.
    """

    folder: str

    def columns(self) -> dict[str, ColumnType]:
        """Read the description; return the columns and their types."""
        return {name: ColumnType.of(each) for name, each in self._read()["columns"].items()}

    def open(self) -> Samples:
        """Map the files.

        Raises:
            ArgumentError: The folder is not a cache.
            DamagedError: A file is missing, or has another shape or type than it should.
        """
        return _Mapped(Path(self.folder), self._read())

    def _read(self) -> dict[str, Any]:
        path = Path(self.folder) / "columns.json"
        if not path.exists():
            raise ArgumentError(
                f"`{self.folder}` has no columns.json; `cache_columns` writes it"
            )
        try:
            found = json.loads(read_regular(path, _LARGEST))
            if found["format"] != FORMAT or not isinstance(found["samples"], int):
                raise ValueError(f"its format is {found['format']!r}")
            for name in found["columns"]:
                if not name.isidentifier():
                    raise ValueError(f"it names a column {name!r}")
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise DamagedError(f"`{path}` does not describe columns: {problem}") from None
        return found


class _Mapped(Samples):
    def __init__(self, folder: Path, said: dict[str, Any]) -> None:
        self._folder, self._length, self._facts = folder, said["samples"], said.get("facts", {})
        self._types = {name: ColumnType.of(each) for name, each in said["columns"].items()}
        self._arrays: dict[str, Any] = {}
        self._rows: dict[str, Rows] = {}
        for name, kind in self._types.items():
            path = folder / f"{name}.{'npy' if kind.fixed else 'arrow'}"
            try:
                regular_stat(path)
                if kind.fixed:
                    mapped = np.load(path, mmap_mode="r", allow_pickle=False)
                    # A plain array is faster to index, and keeps the memmap open.
                    self._arrays[name] = np.asarray(mapped)
                    found: Any = (self._arrays[name].shape, self._arrays[name].dtype)
                    right: Any = ((self._length, *kind.shape), kind.dtype)
                else:
                    self._rows[name] = Rows([path], groups=1)
                    found, right = len(self._rows[name]), self._length
            except (FileNotFoundError, ValueError, EOFError) as problem:
                raise DamagedError(f"`{path}` cannot be read: {problem}") from None
            if found != right:
                raise DamagedError(f"`{path}` holds {found}; columns.json says {right}")

    def __len__(self) -> int:
        return self._length

    def read(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in columns:
            if name in self._rows:
                value = self._rows[name].read(index, (name,))[name]
                found[name] = json.loads(value) if self._types[name].kind == "json" else value
                shape = self._types[name].shape
                if len(shape) > 1:
                    sizes = self._rows[name].read(index, ("shape",))["shape"]
                    found[name] = value.reshape(sizes)
            else:
                value = self._arrays[name][index]
                found[name] = value if self._types[name].shape else value.item()
        return found

    def values(self, column: str) -> list[Any]:
        if column in self._arrays:
            return self._arrays[column].tolist()
        return super().values(column)

    def place(self, index: int) -> str:
        return f"{self._folder} sample {index}"

    @property
    def facts(self) -> dict[str, Any]:
        return self._facts
