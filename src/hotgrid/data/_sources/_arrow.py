"""Parquet and Arrow files: tables whose columns keep their names and types."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotgrid.data._plan import ColumnType, Samples, Source, source
from hotgrid.errors import ArgumentError, DamagedError, MissingPartError, near

from ._files import found_files

_SUFFIXES = (".parquet", ".arrow", ".feather")


@source("arrow")
@dataclass(frozen=True)
class ArrowFiles(Source):
    """Parquet and Arrow files, a sample a row. Needs `pip install 'hotgrid[parquet]'`.

    Arrow files are mapped into memory: any order costs the same. Of parquet files a whole
    row group is read for a sample, and the last few are kept; shuffled reading wants small
    row groups, or a cache (`cache_columns`). A column that is a struct, as images of Hugging
    Face are, becomes one column for every field: `image_bytes`, `image_path`.

    Args:
        paths: Files, folders and patterns; `.parquet`, `.arrow` and `.feather`.
        groups: How many row groups of parquet are kept in memory.
    """

    paths: tuple[str, ...]
    groups: int = 8

    def columns(self) -> dict[str, ColumnType]:
        """Read the schema of the first file; return the columns and their types."""
        schema = _schema(found_files(self.paths, _SUFFIXES)[0])
        return {name: kind for name, (kind, _) in flat_columns(schema).items()}

    def __str__(self) -> str:
        return f"{self.kind} {', '.join(self.paths)}"

    def open(self) -> Samples:
        """Open the files.

        Raises:
            ArgumentError: There is none, or no row.
            DamagedError: One is damaged, or has other columns than the first.
            MissingPartError: pyarrow is not installed.
        """
        return Rows(found_files(self.paths, _SUFFIXES), self.groups)


class Rows(Samples):
    """The rows of some files with the same columns."""

    def __init__(self, paths: Sequence[Path], groups: int) -> None:
        schema = _schema(paths[0])
        self._flat = flat_columns(schema)
        self._groups = max(1, groups)
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, Any] = OrderedDict()
        # A block is a record batch, or a row group that is still on the disk.
        self._blocks: list[tuple[Path, int, Any]] = []
        counts: list[int] = []
        self._metadata = {**(schema.metadata or {})}
        for path in paths:
            other = _schema(path)
            if not other.equals(schema):
                raise DamagedError(f"`{path}` has other columns than `{paths[0]}`: {other}")
            for number, rows, block in _blocks(path):
                self._blocks.append((path, number, block))
                counts.append(rows)
        self._ends = np.cumsum(counts)
        if not counts or not self._ends[-1]:
            raise ArgumentError(f"`{paths[0]}` has no row")

    def __len__(self) -> int:
        return int(self._ends[-1])

    def read(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        block, row = self._find(index)
        batch = self._batch(block)
        return {name: self._value(batch, name, row) for name in columns}

    def _value(self, batch: Any, name: str, row: int) -> Any:
        kind, (outer, inner) = self._flat[name]
        value = batch.column(outer)[row]
        if inner is not None and value.is_valid:
            value = value[inner]
        if not value.is_valid:
            raise DamagedError(f"column `{name}` is null")
        if kind.shape:
            if value.values.null_count:
                raise DamagedError(f"column `{name}` has a null inside")
            return value.values.to_numpy(zero_copy_only=False)
        return value.as_py()

    def values(self, column: str) -> list[Any]:
        """A column of all samples, one block after the other."""
        _, (outer, inner) = self._flat[column]
        found: list[Any] = []
        for block in range(len(self._blocks)):
            batch = self._batch(block).column(outer)
            each = batch if inner is None else _pyarrow("compute").struct_field(batch, inner)
            found += each.to_pylist()
        return found

    def place(self, index: int) -> str:
        block, row = self._find(index)
        path, number, _ = self._blocks[block]
        return f"{path} block {number} row {row}"

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """The metadata of the file's schema."""
        return self._metadata

    def _find(self, index: int) -> tuple[int, int]:
        block = int(np.searchsorted(self._ends, index, "right"))
        return block, index - (int(self._ends[block - 1]) if block else 0)

    def _batch(self, block: int) -> Any:
        path, number, found = self._blocks[block]
        if found is not None:
            return found
        with self._lock:
            if block in self._kept:
                self._kept.move_to_end(block)
                return self._kept[block]
            table = _parquet_file(path).read_row_group(number).combine_chunks()
            self._kept[block] = table
            if len(self._kept) > self._groups:
                self._kept.popitem(last=False)
            return table


def flat_columns(schema: Any) -> dict[str, tuple[ColumnType, tuple[str, str | None]]]:
    """The columns of a schema, structs opened, each with its type and where it is."""
    types = _pyarrow("types")
    found = {}
    for field in schema:
        if types.is_struct(field.type):
            for inner in field.type:
                kind = _kind(inner.type)
                if kind is not None:
                    found[f"{field.name}_{inner.name}"] = (kind, (field.name, inner.name))
        else:
            kind = _kind(field.type)
            if kind is not None:
                found[field.name] = (kind, (field.name, None))
    return found


def _kind(found: Any) -> ColumnType | None:
    """The type of a column of Arrow; None if hotgrid has none for it."""
    types = _pyarrow("types")
    if types.is_string(found) or types.is_large_string(found):
        return ColumnType("text")
    if types.is_binary(found) or types.is_large_binary(found):
        return ColumnType("bytes")
    if types.is_list(found) or types.is_large_list(found) or types.is_fixed_size_list(found):
        inner = _kind(found.value_type)
        size = found.list_size if types.is_fixed_size_list(found) else None
        numbers = inner is not None and inner.dtype is not None and not inner.shape
        return ColumnType(inner.kind, (size,)) if inner is not None and numbers else None
    try:
        return ColumnType(np.dtype(found.to_pandas_dtype()).name)
    except (ArgumentError, NotImplementedError, TypeError):
        return None


def _schema(path: Path) -> Any:
    if path.suffix == ".parquet":
        return _parquet_file(path).schema_arrow
    return _ipc(path).schema


def _blocks(path: Path) -> list[tuple[int, int, Any]]:
    if path.suffix == ".parquet":
        meta = _parquet_file(path).metadata
        return [(n, meta.row_group(n).num_rows, None) for n in range(meta.num_row_groups)]
    reader = _ipc(path)
    if hasattr(reader, "num_record_batches"):
        batches = [reader.get_batch(n) for n in range(reader.num_record_batches)]
    else:
        batches = list(reader)
    return [(n, batch.num_rows, batch) for n, batch in enumerate(batches)]


def _parquet_file(path: Path) -> Any:
    parquet = _pyarrow("parquet")
    try:
        return parquet.ParquetFile(path)
    except (OSError, ValueError) as problem:
        raise DamagedError(f"`{path}` is not a parquet file: {problem}") from None


def _ipc(path: Path) -> Any:
    """A reader of an Arrow file, or of an Arrow stream as Hugging Face writes them."""
    arrow = _pyarrow()
    try:
        mapped = arrow.memory_map(str(path))
        with path.open("rb") as file:
            whole = file.read(6) == b"ARROW1"
        ipc = _pyarrow("ipc")
        return ipc.open_file(mapped) if whole else ipc.open_stream(mapped)
    except (OSError, ValueError) as problem:
        raise DamagedError(f"`{path}` is not an Arrow file: {problem}") from None


def _pyarrow(module: str = "") -> Any:
    import importlib

    try:
        return importlib.import_module(f"pyarrow.{module}" if module else "pyarrow")
    except ImportError:
        raise MissingPartError(
            "parquet and Arrow files need pyarrow: pip install 'hotgrid[parquet]'"
        ) from None


def column_named(name: str, known: Sequence[str], where: str) -> str:
    """The name, if it is known.

    Raises:
        ArgumentError: The name is not known.
    """
    if name not in known:
        hint = near(name, known) or f"; there are {', '.join(known)}"
        raise ArgumentError(f"{where} has no column `{name}`{hint}")
    return name
