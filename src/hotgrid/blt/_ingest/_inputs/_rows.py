"""Rows: objects of JSON or of parquet, whose columns become parts of a document."""

import base64
import binascii
import gzip
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from hotgrid.blt._ingest._settings import IngestSettings
from hotgrid.errors import DamagedError, HotgridError
from hotgrid.files import open_regular

from ._archives import most_unpacked
from ._record import Fault, Part, Record
from ._units import BLOCK, HUB, Unit

Fetch = Callable[[str], Path]
"""Gives the file of a reference that begins with `hf://`."""

_NAMES_OF_JSON = {list: "list", bool: "truth value", int: "number", float: "number"}
_STEP = 1 << 20
_OF_MEDIA = {"bytes", "path"}
_IDS = ("sample_id", "task_id", "id", "uuid", "doc_id")


def read_rows(unit: Unit, settings: IngestSettings, fetch: Fetch) -> Iterator[Record | Fault]:
    """Yield the documents of a block of lines: those that begin in it."""
    with os.fdopen(open_regular(Path(str(unit.path))), "rb") as file:
        begin = unit.part * BLOCK
        if begin:
            file.seek(begin - 1)
            _skip_line(file, begin + BLOCK)
        yield from _lines(file, unit, begin + BLOCK, settings, fetch)


def read_packed_rows(
    unit: Unit, settings: IngestSettings, fetch: Fetch
) -> Iterator[Record | Fault]:
    """Yield the documents of lines that gzip has packed, up to the limits of an archive."""
    with (
        os.fdopen(open_regular(Path(str(unit.path))), "rb") as plain,
        gzip.open(plain, "rb") as file,
    ):
        most, reason = most_unpacked(os.fstat(plain.fileno()).st_size, settings)
        yield from _lines(file, unit, most, settings, fetch)
        if file.read(1):
            yield Fault(unit.name, reason)


def _lines(
    file: Any, unit: Unit, end: int, settings: IngestSettings, fetch: Fetch
) -> Iterator[Record | Fault]:
    while (at := file.tell()) < end:
        line = file.readline(settings.file_bytes + 1)
        if not line:
            return
        name = f"{unit.name}@{at}"
        if len(line) > settings.file_bytes:
            _skip_line(file, end)
            yield Fault(
                name, f"the row is above the limit of {settings.file_bytes:,} (--file-bytes)"
            )
        elif line.strip():
            try:
                # Python refuses numbers of above 4300 digits, and deep nesting.
                row = json.loads(line)
            except (ValueError, RecursionError) as problem:
                yield Fault(name, f"the row is not JSON: {problem}")
                continue
            if isinstance(row, str):
                row = {"text": row}
            if not isinstance(row, dict):
                what = "null" if row is None else f"a {_NAMES_OF_JSON[type(row)]}"
                yield Fault(name, f"the row is {what}, not an object")
                continue
            yield record_of(name, row, settings, fetch)


def _skip_line(file: BinaryIO, end: int) -> None:
    """Skip to the next line, or to `end`: no later one begins in this block."""
    while file.tell() < end:
        part = file.readline(_STEP)
        if not part or part.endswith(b"\n"):
            return


def record_of(
    name: str, row: Mapping[str, Any], settings: IngestSettings, fetch: Fetch
) -> Record | Fault:
    """The document of a row.

    Columns are mapped by type. Texts are text, a text that begins with `hf://` is the file
    that it refers to, bytes and objects of `bytes` and `path` alone are media of the kind that
    their bytes say, so are lists of those; other lists and objects are JSON, with bytes in them
    as base64. Numbers are left out.
    """
    known = next((str(row[key]) for key in _IDS if isinstance(row.get(key), str | int)), None)
    title = name if known is None else f"{name}:{known[:128]}"
    chosen = settings.columns or tuple(key for key in row if key not in _IDS)
    parts: list[Part] = []
    try:
        for column in chosen:
            parts.extend(_parts(_label(column), row.get(column), fetch))
    except HotgridError as problem:
        return Fault(title, str(problem))
    except OSError as problem:
        return Fault(title, f"a file that it refers to cannot be read: {problem}")
    if not parts:
        columns = ", ".join(map(str, chosen)) or "none"
        return Fault(title, f"the row has no text and no media in its columns ({columns})")
    if sum(len(part.data) for part in parts) > settings.file_bytes:
        return Fault(
            title, f"the row is above the limit of {settings.file_bytes:,} (--file-bytes)"
        )
    label = parts[0].label if len(parts) > 1 else ""
    return Record(title, tuple(parts) if label else (_unlabelled(parts[0]),))


def _label(column: str) -> str:
    """The name of a column; half a character, which JSON can name, is not text for SQLite."""
    return column.encode("utf-8", "backslashreplace").decode()


def _unlabelled(part: Part) -> Part:
    return Part("", part.name, part.data, part.pure)


def _parts(column: str, value: Any, fetch: Fetch) -> Iterator[Part]:
    if isinstance(value, str) and value.startswith(HUB):
        yield Part(column, value.rsplit("/", 1)[-1], fetch(value).read_bytes())
    elif isinstance(value, str):
        if value:
            data = value.encode("utf-8", "surrogatepass")
            yield Part(column, "", data, pure=True)
    elif isinstance(value, bytes):
        if value:
            yield Part(column, "", value)
    elif _is_medium(value):
        yield from _media(column, value, fetch)
    elif isinstance(value, list) and value and all(map(_is_listed, value)):
        for number, each in enumerate(value):
            yield from _parts(f"{column}/{number}", each, fetch)
    elif isinstance(value, list | Mapping) and value:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=_as_json)
        yield Part(column, "", text.encode("utf-8", "surrogatepass"), pure=True)


def _is_medium(value: Any) -> bool:
    """Whether it is an object as data sets have them for media, not one that has a path too."""
    if not isinstance(value, Mapping) or not value:
        return False
    plain = all(each is None or isinstance(each, str | bytes) for each in value.values())
    return isinstance(value.get("bytes"), bytes) or (plain and value.keys() <= _OF_MEDIA)


def _is_listed(value: Any) -> bool:
    return isinstance(value, bytes) or (_is_medium(value) and "bytes" in value)


def _as_json(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _media(column: str, value: Mapping[str, Any], fetch: Fetch) -> Iterator[Part]:
    """An image or sound as data sets hold them: bytes, or a reference to a file."""
    data, path = value.get("bytes"), value.get("path")
    name = path.rsplit("/", 1)[-1] if isinstance(path, str) else ""
    if isinstance(data, str):
        try:
            data = base64.b64decode(data, validate=True)
        except binascii.Error:
            raise DamagedError(f"the bytes of `{column}` are not base64") from None
    if isinstance(data, bytes) and data:
        yield Part(column, name, data)
    elif isinstance(path, str) and path.startswith(HUB):
        yield Part(column, name, fetch(path).read_bytes())
    elif isinstance(path, str):
        # A row must not name files of this machine: it may come from someone else.
        raise DamagedError(f"`{column}` refers to `{path}`, and only hf:// is followed")
