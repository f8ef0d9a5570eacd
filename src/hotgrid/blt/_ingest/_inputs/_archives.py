"""Archives: tar, zip and packed files, within limits on what they unpack to."""

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from hotgrid.blt._ingest._settings import MIB, IngestSettings
from hotgrid.errors import DamagedError
from hotgrid.files import open_regular

from ._record import Fault, Part, Record
from ._units import Unit, is_wanted

MOST_MEMBERS = 1_000_000
MOST_NESTED = 3
MOST_RATIO = 500
"""The most that an archive may unpack to, over its size; the first 16 MiB do not count."""

_FREE = 16 * MIB
_READ = 1 << 20
_PACKED = {".gz": gzip.open, ".tgz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    OverflowError,
)


def most_unpacked(packed: int, settings: IngestSettings) -> tuple[int, str]:
    """The most bytes that a packed file may unpack to, and what is wrong with more."""
    ratio = _FREE + MOST_RATIO * packed
    if ratio < settings.archive_bytes:
        return ratio, (
            f"it unpacks to more than {MOST_RATIO} times its size, the limit "
            "(a decompression bomb?)"
        )
    most = settings.archive_bytes
    return most, f"it unpacks to more than {most:,} bytes, the limit (--archive-bytes)"


class _Budget:
    """The bytes that may still be unpacked."""

    def __init__(self, packed: int, settings: IngestSettings) -> None:
        self._limit, self._reason = most_unpacked(packed, settings)
        self._done = self._members = 0

    def spend(self, count: int) -> None:
        self._done += count
        if self._done > self._limit:
            raise DamagedError(self._reason)

    def member(self) -> None:
        self._members += 1
        if self._members > MOST_MEMBERS:
            raise DamagedError(f"it has more than {MOST_MEMBERS:,} members, the limit")


class _Counted(io.RawIOBase):
    """A stream that counts what is read of it."""

    def __init__(self, inner: IO[bytes], budget: _Budget) -> None:
        self._inner, self._budget = inner, budget

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._inner.read(min(len(buffer), _READ))
        self._budget.spend(len(data))
        buffer[: len(data)] = data
        return len(data)


def read_archive(unit: Unit, settings: IngestSettings) -> Iterator[Record | Fault]:
    """Yield the members of an archive, in their order."""
    with os.fdopen(open_regular(Path(str(unit.path))), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        budget = _Budget(size, settings)
        yield from _members(file, unit.name, budget, settings, 1)


def _members(
    file: BinaryIO, name: str, budget: _Budget, settings: IngestSettings, depth: int
) -> Iterator[Record | Fault]:
    lower = name.lower()
    try:
        if lower.endswith(".zip"):
            yield from _zip(file, name, budget, settings, depth)
        elif lower.endswith(".tar"):
            inner = io.BufferedReader(_Counted(file, budget), _READ)
            yield from _tar(inner, name, budget, settings, depth)
        else:
            ending = next(each for each in _PACKED if lower.endswith(each))
            with _PACKED[ending](file, "rb") as plain:
                inner = io.BufferedReader(_Counted(plain, budget), _READ)
                short = name[: -len(ending)]
                if ending == ".tgz" or short.lower().endswith(".tar"):
                    yield from _tar(inner, name, budget, settings, depth)
                else:
                    yield from _member(inner, short, name, budget, settings, depth)
    except DamagedError as problem:
        yield Fault(name, str(problem))
    except _BROKEN as problem:
        yield Fault(name, f"the archive is damaged: {type(problem).__name__}: {problem}"[:300])


def _zip(
    file: BinaryIO, name: str, budget: _Budget, settings: IngestSettings, depth: int
) -> Iterator[Record | Fault]:
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            budget.member()
            if member.is_dir() or not is_wanted(member.filename, settings):
                continue
            title = f"{name}!{member.filename}"
            if member.flag_bits & 1:
                yield Fault(title, "it is encrypted")
                continue
            try:
                with archive.open(member) as opened:
                    inner = io.BufferedReader(_Counted(opened, budget), _READ)
                    yield from _member(inner, member.filename, title, budget, settings, depth)
            except DamagedError:
                raise
            except _BROKEN as problem:
                yield Fault(title, f"it is damaged: {type(problem).__name__}: {problem}"[:300])


def _tar(
    file: Any, name: str, budget: _Budget, settings: IngestSettings, depth: int
) -> Iterator[Record | Fault]:
    # As a stream: nothing is sought, nothing is written to the disk, links are not followed.
    with tarfile.open(fileobj=file, mode="r|") as archive:
        for member in archive:
            budget.member()
            # The list of all members would grow without a limit.
            cast("Any", archive).members = []
            if not member.isfile() or not is_wanted(member.name, settings):
                continue
            opened = archive.extractfile(member)
            if opened is not None:
                title = f"{name}!{member.name}"
                yield from _member(opened, member.name, title, budget, settings, depth)


def _member(
    opened: IO[bytes],
    name: str,
    title: str,
    budget: _Budget,
    settings: IngestSettings,
    depth: int,
) -> Iterator[Record | Fault]:
    """One file inside an archive; long texts are cut, archives in archives are opened."""
    from hotgrid.blt._ingest._modalities._registry import HEAD, modality_of

    step = settings.document_bytes
    data = opened.read(step)
    if name.lower().endswith((*_PACKED, ".zip", ".tar")):
        data += opened.read(settings.file_bytes + 1 - len(data))
        if len(data) > settings.file_bytes:
            yield Fault(title, _too_large(settings))
        elif depth == MOST_NESTED:
            yield Fault(title, f"archives are opened to a depth of {MOST_NESTED}, the limit")
        else:
            inner = io.BytesIO(data)
            yield from _members(inner, title, budget, settings, depth + 1)
        return
    more = opened.read(1)
    if not more:
        yield Record(title, (Part("", name, data),))
    elif modality_of(data[:HEAD], name).whole:
        data += more + opened.read(settings.file_bytes - len(data))
        if len(data) > settings.file_bytes:
            yield Fault(title, _too_large(settings))
        else:
            yield Record(title, (Part("", name, data),))
    else:
        at, carried = 0, data + more
        while carried:
            # One byte more than a document says whether it is the last.
            carried += opened.read(max(0, step + 1 - len(carried)))
            end = len(carried) if len(carried) <= step else _line_end(carried[:step])
            part = Part("", name, carried[:end], pure=True)
            yield Record(f"{title}[{at}:{at + end}]", (part,))
            at, carried = at + end, carried[end:]
            carried = carried or opened.read(1)


def _line_end(data: bytes) -> int:
    """After the last line that ends in the second half, or after the last whole character."""
    line = data.rfind(b"\n", len(data) // 2)
    if line >= 0:
        return line + 1
    for back in range(1, 4):
        if data[-back] & 0xC0 == 0xC0:
            return len(data) - back
        if data[-back] & 0x80 == 0:
            break
    return len(data)


def _too_large(settings: IngestSettings) -> str:
    return (
        f"it must be read as a whole and is above the limit of {settings.file_bytes:,} bytes "
        "(--file-bytes)"
    )
