"""Tar files as webdataset writes them: files with the same stem are a sample."""

import json
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from hotgrid.data._plan import ColumnType, Samples, Source, source
from hotgrid.errors import ArgumentError, DamagedError

from ._files import OpenFiles, found_files


@source("tar")
@dataclass(frozen=True)
class TarShards(Source):
    """Uncompressed tar files; members that differ only in their extension are one sample.

    `0001.jpg` and `0001.cls` are the columns `jpg` and `cls` of a sample. Its key, the name
    up to the first dot, is the column `key`. Members are found once, when it is opened, and
    read at their place: any order costs the same. Members of other extensions are left out.
    A link, a device, an absolute path or `..` in a tar file is refused.

    Args:
        paths: Files, folders with `.tar` files, and patterns such as `train-{000..099}.tar`.
        types: The extensions to read and their types; each is a column. `text`, `json` and
            numbers are parsed, `bytes` is what is in the member.
        most_bytes: The largest member that is read.
    """

    paths: tuple[str, ...]
    types: dict[str, str]
    most_bytes: int = 1 << 30

    def columns(self) -> dict[str, ColumnType]:
        """Return the columns and their types."""
        found = {"key": ColumnType("text")}
        return found | {_column(n): ColumnType.of(each) for n, each in self.types.items()}

    def __str__(self) -> str:
        return f"{self.kind} {', '.join(self.paths)}"

    def open(self) -> Samples:
        """Find the members.

        Raises:
            ArgumentError: There is no file, or no sample that has all extensions.
            DamagedError: A file is not a tar file, or has a member that is refused.
        """
        return _Members(self)


class _Members(Samples):
    def __init__(self, given: TarShards) -> None:
        self._given = given
        self._types = given.columns()
        self._files = OpenFiles(found_files(given.paths, (".tar",)))
        wanted = {extension: _column(extension) for extension in given.types}
        # A sample: the file, the key, and where each column is.
        self._samples: list[tuple[int, str, dict[str, tuple[int, int]]]] = []
        self.incomplete = 0
        for number, path in enumerate(self._files.paths):
            found = _scanned(self._files, number, wanted)
            whole = {key: each for key, each in found.items() if len(each) == len(wanted)}
            self.incomplete += len(found) - len(whole)
            self._samples += [(number, key, each) for key, each in whole.items()]
            if not found:
                raise ArgumentError(
                    f"`{path}` has no member that ends in {', '.join(given.types)}"
                )
        if not self._samples:
            raise ArgumentError(
                f"`{self._files.paths[0]}` has no sample with all of {', '.join(given.types)}"
            )

    def __len__(self) -> int:
        return len(self._samples)

    def read(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        number, key, places = self._samples[index]
        found: dict[str, Any] = {}
        for name in columns:
            if name == "key":
                found[name] = key
                continue
            at, size = places[name]
            if size > self._given.most_bytes:
                raise DamagedError(
                    f"column `{name}` has {size} bytes, more than `most_bytes` "
                    f"{self._given.most_bytes}"
                )
            found[name] = _value(self._files[number].read(at, size), name, self._types[name])
        return found

    def place(self, index: int) -> str:
        number, key, _ = self._samples[index]
        return f"{self._files.paths[number]} member {key}"

    @property
    def facts(self) -> dict[str, Any]:
        return {"incomplete": self.incomplete}


def _scanned(
    files: OpenFiles, number: int, wanted: dict[str, str]
) -> dict[str, dict[str, tuple[int, int]]]:
    path = files.paths[number]
    size = files[number].size
    found: dict[str, dict[str, tuple[int, int]]] = {}
    try:
        with tarfile.open(path, "r:") as opened:
            for member in opened:
                _require_plain(str(path), member)
                folder, _, name = member.name.rpartition("/")
                stem, _, extension = name.partition(".")
                if not member.isreg() or extension.lower() not in wanted:
                    continue
                if member.offset_data + member.size > size:
                    raise DamagedError(f"`{path}` is cut off in member `{member.name}`")
                key = f"{folder}/{stem}" if folder else stem
                place = (member.offset_data, member.size)
                found.setdefault(key, {})[wanted[extension.lower()]] = place
            end = opened.offset
        # A tar ends with blocks of zeros; without them, what followed is lost.
        if size < end + tarfile.BLOCKSIZE or any(files[number].read(end, tarfile.BLOCKSIZE)):
            raise DamagedError(f"`{path}` is cut off after {len(found):,} samples")
    except (tarfile.TarError, EOFError) as problem:
        raise DamagedError(f"`{path}` is not an uncompressed tar file: {problem}") from None
    return found


def _require_plain(path: str, member: tarfile.TarInfo) -> None:
    parts = PurePosixPath(member.name).parts
    if member.name.startswith("/") or ".." in parts:
        raise DamagedError(f"`{path}` has a member `{member.name}` outside of its folder")
    if not (member.isreg() or member.isdir()) or member.issparse():
        kind = "a link" if member.issym() or member.islnk() else "not a regular file"
        raise DamagedError(f"`{path}` has a member `{member.name}` that is {kind}")


def _value(data: bytes, name: str, kind: ColumnType) -> Any:
    try:
        if kind.kind == "bytes":
            return data
        if kind.kind == "text":
            return data.decode()
        found = json.loads(data)
    except (ValueError, RecursionError) as problem:
        raise DamagedError(f"column `{name}` cannot be read as {kind}: {problem}") from None
    wrong = kind.problem(found)
    if wrong:
        raise DamagedError(f"column `{name}` is {wrong}")
    return kind.array(found)


def _column(extension: str) -> str:
    """`seg.png` is the column `seg_png`."""
    return extension.lower().replace(".", "_").replace("-", "_")
