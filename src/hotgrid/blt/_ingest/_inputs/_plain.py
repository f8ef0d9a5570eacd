"""Plain files: as a whole, or cut into documents where they are long."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from hotgrid.blt._ingest._modalities._registry import HEAD, modality_of
from hotgrid.blt._ingest._settings import IngestSettings
from hotgrid.files import open_regular

from ._record import Fault, Part, Record
from ._units import Unit, span

# How far after its place a cut may move to the end of a line.
_SEARCH = 1 << 14


def read_plain(unit: Unit, settings: IngestSettings) -> Iterator[Record | Fault]:
    """Yield the documents of a unit of a plain file."""
    with os.fdopen(open_regular(Path(str(unit.path))), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(HEAD)
        name = unit.name
        if modality_of(head, name).whole and size > settings.document_bytes:
            if unit.part == 0:
                yield _whole(file, size, unit, settings)
            return
        if size <= settings.document_bytes:
            file.seek(0)
            yield Record(name, (Part("", name, file.read(settings.document_bytes + 1)),))
            return
        step = settings.document_bytes
        begin = unit.part * span(settings)
        for at in range(begin, min(begin + span(settings), size), step):
            first, last = _cut(file, at, size), _cut(file, at + step, size)
            file.seek(first)
            data = file.read(last - first)
            if data:
                yield Record(f"{name}[{first}:{last}]", (Part("", name, data, pure=True),))


def _whole(file: BinaryIO, size: int, unit: Unit, settings: IngestSettings) -> Record | Fault:
    if size > settings.file_bytes:
        return Fault(
            unit.name,
            f"it has {size:,} bytes and must be read as a whole, above the limit of "
            f"{settings.file_bytes:,} (--file-bytes)",
        )
    file.seek(0)
    return Record(unit.name, (Part("", unit.name, file.read(size)),))


def _cut(file: BinaryIO, place: int, size: int) -> int:
    """Where a document that is full at `place` ends: after a line, or after a character.

    It depends on the bytes after that place alone, so that documents can be cut in parallel.
    """
    if place <= 0:
        return 0
    if place >= size:
        return size
    file.seek(place)
    data = file.read(_SEARCH)
    line = data.find(b"\n")
    if line >= 0:
        return place + line + 1
    # Up to three bytes of a character of UTF-8 may be left.
    for offset, byte in enumerate(data[:4]):
        if byte & 0xC0 != 0x80:
            return place + offset
    return place
