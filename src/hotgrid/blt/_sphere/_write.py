"""Places in a sidecar: the table `places`, replaced as a whole."""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from hotgrid.blt._ingest._outputs._manifest import replaced_file
from hotgrid.blt._sidecar._sidecar import read_only
from hotgrid.errors import StoreError
from hotgrid.files import whole_file
from hotgrid.store import RunFolder

from ._leaves import Source

KEY = "sphere"
"""The row of `meta` that says how places were made."""

_SCHEMA = """
CREATE TABLE places (
    node INTEGER PRIMARY KEY REFERENCES nodes (id),
    zone TEXT NOT NULL,
    shell INTEGER NOT NULL,
    radius REAL NOT NULL,
    theta REAL NOT NULL,
    phi REAL NOT NULL,
    entropy REAL NOT NULL,
    prominence REAL
);
"""


def write_places(
    source: Source, rows: Iterable[tuple[Any, ...]], about: dict[str, Any]
) -> None:
    """Write rows in the order of the columns, in place of all earlier ones.

    Raises:
        DamagedError: The sidecar is not what the manifest of the corpus says.
        StoreError: Another program works in the folder, or has the sidecar open.
    """
    with _replaced(source) as aside:
        with closing(read_only(source.database)) as old, closing(sqlite3.connect(aside)) as new:
            old.backup(new)
            new.execute("PRAGMA journal_mode = WAL")
            with new:
                new.execute("DROP TABLE IF EXISTS places")
                new.execute(_SCHEMA)
                new.executemany("INSERT INTO places VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
                new.execute(
                    "INSERT OR REPLACE INTO meta VALUES (?, ?)", [KEY, json.dumps(about)]
                )
        for ending in ("-wal", "-shm"):
            Path(f"{aside}{ending}").unlink(missing_ok=True)


@contextmanager
def _replaced(source: Source) -> Iterator[Path]:
    # A log belongs to the file that it was written for.
    if Path(f"{source.database}-wal").exists():
        raise StoreError(f"another program has `{source.database}` open")
    if source.corpus is None:
        with whole_file(source.database) as aside:
            yield aside
        return
    folder = source.corpus.folder
    with RunFolder(folder), replaced_file(folder, source.database.name) as aside:
        yield aside
