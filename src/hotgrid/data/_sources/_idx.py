"""IDX files, the format of MNIST: a header with the sizes, then the numbers."""

import gzip
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotgrid.data._plan import ColumnType, Samples, Source, source
from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.files import regular_stat

from ._files import OpenFile

_TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
# Above this a file is refused before anything is allocated.
_LARGEST = 1 << 36


@source("idx")
@dataclass(frozen=True)
class IdxFiles(Source):
    """A column for every IDX file, plain or as `.gz`; all have equally many samples.

    Args:
        files: The file of every column, such as `{"pixels": "train-images-idx3-ubyte.gz"}`.
            A column of single whole numbers, as labels are, becomes int64.

    Example:
        >>> _ = Path("labels").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]))
        >>> IdxFiles({"label": "labels"}).open().read(1, ["label"])
        {'label': 9}
    """

    files: dict[str, str]

    def columns(self) -> dict[str, ColumnType]:
        """Read the headers; return the columns and their types."""
        found = {}
        for name, path in self.files.items():
            kind, sizes = _header(Path(path))
            dtype = np.dtype(kind).newbyteorder("=")
            if len(sizes) == 1 and dtype.kind in "iu":
                dtype = np.dtype(np.int64)
            found[name] = ColumnType(dtype.name, sizes[1:])
        return found

    def __str__(self) -> str:
        return f"{self.kind} {', '.join(self.files.values())}"

    def open(self) -> Samples:
        """Read the files.

        Raises:
            ArgumentError: They have different numbers of samples.
            DamagedError: One is not an IDX file, or too short or too long.
        """
        return _Arrays(self)


class _Arrays(Samples):
    def __init__(self, given: IdxFiles) -> None:
        types = given.columns()
        if not types:
            raise ArgumentError("`files` names no column; expected such as {'pixels': PATH}")
        self._paths = given.files
        self._arrays = {name: _numbers(Path(path)) for name, path in given.files.items()}
        for name, array in self._arrays.items():
            # int64 labels, and the byte order of this machine.
            self._arrays[name] = array.astype(types[name].dtype, copy=False)
        lengths = {name: len(array) for name, array in self._arrays.items()}
        if len({*lengths.values()}) != 1:
            raise ArgumentError(f"the IDX files have different numbers of samples: {lengths}")
        self._length = next(iter(lengths.values()))

    def __len__(self) -> int:
        return self._length

    def read(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        found = {name: self._arrays[name][index] for name in columns}
        return {n: each.item() if each.ndim == 0 else each for n, each in found.items()}

    def values(self, column: str) -> list[Any]:
        return self._arrays[column].tolist()

    def place(self, index: int) -> str:
        return f"{next(iter(self._paths.values()))} sample {index}"


def _opened(path: Path) -> Any:
    try:
        regular_stat(path, links=True)
    except FileNotFoundError:
        raise ArgumentError(f"`{path}` is missing") from None
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _header(path: Path) -> tuple[str, tuple[int, ...]]:
    try:
        with _opened(path) as file:
            head = file.read(4)
            if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _TYPES or not head[3]:
                raise DamagedError(f"`{path}` is not an IDX file: it begins with {head!r}")
            sizes = np.frombuffer(file.read(4 * head[3]), ">u4").tolist()
    except (OSError, EOFError, ValueError, zlib.error) as problem:
        raise _unreadable(path, problem) from None
    kind = _TYPES[head[2]]
    if len(sizes) != head[3] or math.prod(sizes) * np.dtype(kind).itemsize > _LARGEST:
        raise DamagedError(f"`{path}` is damaged: its header names the sizes {sizes}")
    return kind, tuple(sizes)


def _numbers(path: Path) -> NDArray[Any]:
    kind, sizes = _header(path)
    begin, size = 4 + 4 * len(sizes), math.prod(sizes) * np.dtype(kind).itemsize
    if path.suffix != ".gz":
        # A header may promise more than there is; ask the file before allocating.
        actual = OpenFile(path.resolve()).size
        if actual != begin + size:
            raise DamagedError(f"`{path}` has {actual} bytes; its header says {begin + size}")
        # A plain array is faster to index than a memmap, and keeps it open.
        return np.asarray(np.memmap(path, np.dtype(kind), "r", begin, sizes))
    try:
        with _opened(path) as file:
            # One byte more than the header promises: a bomb is never unpacked whole.
            data = file.read(begin + size + 1)
    except (OSError, EOFError, zlib.error) as problem:
        raise _unreadable(path, problem) from None
    if len(data) != begin + size:
        raise DamagedError(f"`{path}` does not have the {begin + size} bytes of its header")
    return np.frombuffer(data, kind, offset=begin).reshape(sizes)


def _unreadable(path: Path, problem: Exception) -> Exception:
    if isinstance(problem, DamagedError | ArgumentError):
        return problem
    return DamagedError(f"`{path}` cannot be read: {problem}")
