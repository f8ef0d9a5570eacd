"""The documents of a unit, whatever its kind."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from hotgrid.blt._ingest._settings import IngestSettings
from hotgrid.errors import HotgridError

from ._archives import read_archive
from ._hub import fetch
from ._parquet import read_parquet
from ._plain import read_plain
from ._record import Fault, Part, Record
from ._rows import read_packed_rows, read_rows
from ._units import Unit

Reader = Callable[[Unit, IngestSettings], Iterator[Record | Fault]]


def _text(unit: Unit, settings: IngestSettings) -> Iterator[Record | Fault]:
    data = unit.text.encode("utf-8", "surrogateescape")
    yield Record(unit.name, (Part("", "", data, pure=True),))


def _parquet(unit: Unit, settings: IngestSettings) -> Iterator[Record | Fault]:
    yield from read_parquet(unit.name, Path(str(unit.path)), unit.part, settings, fetch)


def _fault(unit: Unit, settings: IngestSettings) -> Iterator[Record | Fault]:
    yield Fault(unit.name, unit.text)


_READERS: dict[str, Reader] = {
    "file": read_plain,
    "rows": partial(read_rows, fetch=fetch),
    "rows-gz": partial(read_packed_rows, fetch=fetch),
    "parquet": _parquet,
    "archive": read_archive,
    "text": _text,
    "fault": _fault,
}


def read_unit(unit: Unit, settings: IngestSettings) -> Iterator[Record | Fault]:
    """Yield the documents of a unit, and what could not be read, in the order of the input."""
    try:
        yield from _READERS[unit.kind](unit, settings)
    except (HotgridError, OSError, EOFError) as problem:
        yield Fault(unit.name, f"it cannot be read: {problem}")
    except Exception as problem:  # noqa: BLE001 - a hostile file may find any fault of a parser
        yield Fault(unit.name, f"it is damaged: {type(problem).__name__}: {problem}"[:300])
