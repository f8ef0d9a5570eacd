"""Parquet files, a row group at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hotgrid.blt._ingest._settings import IngestSettings
from hotgrid.errors import MissingPartError

from ._record import Fault, Record
from ._rows import Fetch, record_of
from ._units import Unit

_ROWS = 64
"""Rows that are in memory at a time."""


def row_groups(file: Path) -> int:
    """How many row groups there are; 1 if that cannot be read."""
    try:
        with _opened(file) as found:
            return found.num_row_groups
    except (MissingPartError, OSError, ValueError):
        return 1  # reading it will say what is wrong


def read_parquet(
    unit: Unit, settings: IngestSettings, fetch: Fetch
) -> Iterator[Record | Fault]:
    """Yield the documents of a row group."""
    try:
        with _opened(Path(str(unit.path))) as file:
            if not file.num_row_groups:
                return
            group = file.metadata.row_group(unit.part)
            # A row group is unpacked as a whole.
            if group.total_byte_size > settings.archive_bytes:
                yield Fault(
                    f"{unit.name}#{unit.part}",
                    f"the row group has {group.total_byte_size:,} bytes, above the limit of "
                    f"{settings.archive_bytes:,} (--archive-bytes)",
                )
                return
            names = [each for each in settings.columns if each in file.schema_arrow.names]
            number = 0
            for batch in file.iter_batches(_ROWS, [unit.part], columns=names or None):
                for row in batch.to_pylist():
                    yield record_of(f"{unit.name}#{unit.part}.{number}", row, settings, fetch)
                    number += 1
    except (OSError, ValueError) as problem:
        yield Fault(unit.name, f"it is not a parquet file: {str(problem)[:200]}")


def _opened(file: Path) -> Any:
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingPartError(
            "parquet files need pyarrow: pip install 'hotgrid[parquet]'"
        ) from None
    return parquet.ParquetFile(file, memory_map=False, pre_buffer=False)
