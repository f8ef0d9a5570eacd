"""`Sidecar`: documents, views and pieces of a corpus in one SQLite file."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hotgrid.errors import ArgumentError, DamagedError, StoreError
from hotgrid.files import whole_file

from ._graph import Branch, Leaf, Trunk

VERSION = "4"
WHOLE = {"sharding": "sharding_info", "replication": "replication_spec"}
"""What BLT-Burn says of a sidecar as a whole: its name in JSON, and the row of `meta`."""
# `node` has a check in place of NOT NULL, for which `PRAGMA integrity_check` of SQLite 3.40
# reports NULL values in tables without row ids where there are none.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS nodes (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('trunk', 'branch', 'leaf')),
    parent INTEGER REFERENCES nodes (id),
    label TEXT,
    modality TEXT,
    "start" INTEGER,
    "end" INTEGER,
    confidence REAL,
    extra TEXT
);
CREATE INDEX IF NOT EXISTS children ON nodes (parent, id);
CREATE TABLE IF NOT EXISTS edges (
    id INTEGER PRIMARY KEY, label TEXT NOT NULL, weight REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS incidence (
    edge INTEGER NOT NULL REFERENCES edges (id),
    node INTEGER REFERENCES nodes (id) CHECK (node IS NOT NULL),
    position INTEGER NOT NULL,
    PRIMARY KEY (edge, position)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS edges_of_node ON incidence (node);
"""


class Sidecar:
    """The sidecar of a corpus; use it in a `with` block.

    The tables are `nodes` (kind, parent, label, modality, start, end, confidence, extra as
    JSON), `edges` (label, weight) and `incidence` (edge, node, position), readable by any
    SQLite. A trunk has the hash of its document as label and its bytes as `end`. Edges
    are `contains` from a trunk to a branch and from a branch to a leaf, `next` from a leaf to
    the one after it, and `same_source` over all leaves with the same `source_id`.

    Args:
        path: The file; it is made if it does not exist.

    Raises:
        DamagedError: The file is something else, or of another version.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self._database = sqlite3.connect(self.path)
        except sqlite3.Error as problem:
            raise StoreError(f"`{self.path}` cannot be opened: {problem}") from problem
        try:
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._expect_ours()
            self._database.executescript(_SCHEMA)
            self._database.execute(
                "INSERT OR IGNORE INTO meta VALUES ('schema_version', ?)", [VERSION]
            )
            self._database.commit()
        except sqlite3.Error as problem:
            self._database.close()
            raise DamagedError(f"`{self.path}` is not a sidecar: {problem}") from problem

    def _expect_ours(self) -> None:
        tables = self._database.execute(
            "SELECT count(*) FROM sqlite_master WHERE type = 'table'"
        ).fetchone()
        if tables == (0,):
            return
        try:
            expect_version(self._database, self.path)
        except DamagedError:
            self._database.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def add(self, document: Trunk) -> int:
        """Add a document with all its views and edges, or nothing, and return its number.

        A document that is added twice is stored twice.

        Raises:
            ArgumentError: Its size is negative, or a piece ends before it begins.
        """
        _check(document)
        with self._database:
            trunk = self._node(
                "trunk", None, document.source_hash, end=document.total_bytes, start=0
            )
            sources: dict[str, list[int]] = {}
            for branch in document.branches:
                number = self._node("branch", trunk, branch.label, modality=branch.modality)
                self.connect("contains", [trunk, number])
                last = None
                for leaf in branch.leaves:
                    at = self._leaf(number, leaf)
                    self.connect("contains", [number, at])
                    if last is not None:
                        self.connect("next", [last, at])
                    if "source_id" in leaf.extra:
                        sources.setdefault(str(leaf.extra["source_id"]), []).append(at)
                    last = at
            for members in sources.values():
                if len(members) > 1:
                    self.connect("same_source", members)
        return trunk

    def _leaf(self, branch: int, leaf: Leaf) -> int:
        return self._node(
            "leaf",
            branch,
            leaf.label,
            start=leaf.start,
            end=leaf.end,
            confidence=leaf.confidence,
            extra=json.dumps(leaf.extra) if leaf.extra else None,
        )

    def _node(self, kind: str, parent: int | None, label: str | None, **more: Any) -> int:
        values = {"kind": kind, "parent": parent, "label": label, **more}
        names = ", ".join(f'"{name}"' for name in values)
        marks = ", ".join("?" * len(values))
        statement = f"INSERT INTO nodes ({names}) VALUES ({marks})"  # noqa: S608 - our names
        return int(self._database.execute(statement, list(values.values())).lastrowid or 0)

    def connect(self, label: str, nodes: Sequence[int], weight: float = 1.0) -> int:
        """Add an edge over nodes, in order, and return its number."""
        cursor = self._database.execute(
            "INSERT INTO edges (label, weight) VALUES (?, ?)", [label, weight]
        )
        edge = int(cursor.lastrowid or 0)
        self._database.executemany(
            "INSERT INTO incidence VALUES (?, ?, ?)",
            [(edge, node, position) for position, node in enumerate(nodes)],
        )
        return edge

    def _keep_whole(self, facts: Mapping[str, Any]) -> None:
        """Keep what is said of all nodes, unless there are others."""
        if self._database.execute("SELECT 1 FROM nodes LIMIT 1").fetchone() is None:
            rows = [(key, json.dumps(value)) for key, value in facts.items()]
            self._database.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)

    def documents(self) -> Iterator[Trunk]:
        """Yield every document as it was added."""
        for number, label, size in self._database.execute(
            "SELECT id, label, \"end\" FROM nodes WHERE kind = 'trunk' ORDER BY id"
        ):
            branches = [
                Branch(name, modality, list(self._leaves(branch)))
                for branch, name, modality in self._database.execute(
                    "SELECT id, label, modality FROM nodes WHERE parent = ? ORDER BY id",
                    [number],
                )
            ]
            yield Trunk(label, size, branches)

    def _leaves(self, branch: int) -> Iterator[Leaf]:
        for label, start, end, confidence, extra in self._database.execute(
            'SELECT label, "start", "end", confidence, extra FROM nodes WHERE parent = ? '
            "ORDER BY id",
            [branch],
        ):
            yield Leaf(label, start, end, confidence, json.loads(extra) if extra else {})

    def edges(self) -> Iterator[tuple[str, float, list[int]]]:
        """Yield the label, the weight and the nodes of every edge."""
        for edge, label, weight in self._database.execute(
            "SELECT id, label, weight FROM edges ORDER BY id"
        ):
            rows = self._database.execute(
                "SELECT node FROM incidence WHERE edge = ? ORDER BY position", [edge]
            )
            yield label, weight, [node for (node,) in rows]

    def export_json(self, path: str | Path) -> None:
        """Write all as one JSON object in the schema of BLT-Burn, atomically."""
        numbers: dict[int, int] = {}
        nodes: list[dict[str, Any]] = []
        for row in self._database.execute(
            'SELECT id, kind, label, modality, "start", "end", confidence, extra FROM nodes '
            "ORDER BY id"
        ):
            numbers[row[0]] = len(nodes)
            nodes.append(_exported(row))
        edges, topology = [], []
        for number, (label, weight, members) in enumerate(self.edges()):
            edges.append({"label": label, "weight": weight})
            topology.append([number, [numbers[each] for each in members]])
        whole = {"nodes": nodes, "edges": edges, "topology": {"edges": topology}}
        known = dict(self._database.execute("SELECT key, value FROM meta").fetchall())
        whole |= {name: json.loads(known.get(key, "null")) for name, key in WHOLE.items()}
        with whole_file(Path(path)) as aside:
            aside.write_text(json.dumps(whole, indent=2), encoding="utf-8")


def read_only(path: Path) -> sqlite3.Connection:
    """Open a sidecar without changing anything in its folder.

    Raises:
        ArgumentError: There is no such file.
        DamagedError: It is something else.
    """
    if not path.is_file():
        raise ArgumentError(f"there is no sidecar `{path}`")
    # Without a log beside it there is no writer, and SQLite need not make one to read.
    how = "mode=ro" if Path(f"{path}-wal").exists() else "immutable=1"
    database = sqlite3.connect(f"{path.resolve().as_uri()}?{how}", uri=True)
    try:
        expect_version(database, path)
    except sqlite3.Error as problem:
        database.close()
        raise DamagedError(f"`{path}` is not a sidecar: {problem}") from problem
    except DamagedError:
        database.close()
        raise
    return database


def expect_version(database: sqlite3.Connection, path: Path) -> None:
    """Refuse a file with other tables, or of another version."""
    tables = {
        name
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    found = None
    if {"meta", "nodes", "edges", "incidence"} <= tables:
        found = database.execute(
            "SELECT value FROM meta WHERE key = 'schema_version'"
        ).fetchone()
    if found != (VERSION,):
        hint = "; `import_blt_burn` reads that of BLT-Burn" if "hyperedges" in tables else ""
        raise DamagedError(f"`{path}` is not a sidecar of version {VERSION}{hint}")


def _exported(row: tuple[Any, ...]) -> dict[str, Any]:
    _, kind, label, modality, start, end, confidence, extra = row
    if kind == "trunk":
        return {"Trunk": {"source_hash": label, "total_bytes": end}}
    if kind == "branch":
        return {"Branch": {"label": label, "modality": modality}}
    metadata = {"start_offset": start, "end_offset": end, "confidence": confidence}
    metadata["extra"] = json.loads(extra) if extra else None
    return {"Leaf": {"label": label, "metadata": metadata}}


def _check(document: Trunk) -> None:
    if document.total_bytes < 0:
        raise ArgumentError(f"`total_bytes` is {document.total_bytes}; expected 0 or more")
    for branch in document.branches:
        for leaf in branch.leaves:
            if not 0 <= leaf.start <= leaf.end:
                raise ArgumentError(
                    f"the piece {leaf.label!r} of `{branch.label}` goes from {leaf.start} to "
                    f"{leaf.end}; expected 0 <= start <= end"
                )
