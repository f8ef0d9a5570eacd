"""Parquet files, a row group at a time."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hotgrid.blt._ingest._settings import IngestSettings

from ._parquet_file import opened
from ._record import Fault, Record
from ._rows import Fetch, record_of

_ROWS = 64
"""Rows that are in memory at a time."""


def read_parquet(
    name: str, path: Path, part: int, settings: IngestSettings, fetch: Fetch
) -> Iterator[Record | Fault]:
    """Yield the documents of a row group, under the name of the file."""
    try:
        with opened(path) as file:
            if not file.num_row_groups:
                return
            group = file.metadata.row_group(part)
            # A row group is unpacked as a whole.
            if group.total_byte_size > settings.archive_bytes:
                yield Fault(
                    f"{name}#{part}",
                    f"the row group has {group.total_byte_size:,} bytes, above the limit of "
                    f"{settings.archive_bytes:,} (--archive-bytes)",
                )
                return
            twice = [
                each for each, count in Counter(file.schema_arrow.names).items() if count > 1
            ]
            if twice:
                yield Fault(f"{name}#{part}", f"it has more than one column `{twice[0]}`")
                return
            names = [each for each in settings.columns if each in file.schema_arrow.names]
            number = 0
            for batch in file.iter_batches(_ROWS, [part], columns=names or None):
                for row in _without_times(batch).to_pylist():
                    yield record_of(f"{name}#{part}.{number}", row, settings, fetch)
                    number += 1
    except (OSError, ValueError) as problem:
        yield Fault(name, f"it is not a parquet file: {str(problem)[:200]}")


def _without_times(batch: Any) -> Any:
    """Rows without dates, times and durations, which are no text.

    Some of them have no value in Python, or need pandas for it.
    """
    from pyarrow import types

    kept = [at for at, each in enumerate(batch.schema) if not types.is_temporal(each.type)]
    return batch.select(kept)
