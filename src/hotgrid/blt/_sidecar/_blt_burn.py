"""Sidecars of BLT-Burn: its blobs decoded into plain columns."""

import json
import sqlite3
import struct
from pathlib import Path
from typing import Any

from hotgrid.errors import ArgumentError, DamagedError

from ._graph import Leaf
from ._sidecar import WHOLE, Sidecar

# The values of `extra` were written without their types: these are known by name.
_WHOLE = {"patch_index", "patch_length", "page", "page_count", "x", "y", "width", "height"}
_WHOLE |= {"frame_index", "sample_rate", "channels", "frame_size_samples", "patch_size"}
_REAL = {"coherence_score", "mean_entropy", "duration_ms", "local_entropy"}
_TEXT = {"source_id", "view", "modality", "source_type", "format", "char", "token", "language"}
_TEXT |= {"node_type", "name"}
_MARKS = {251: 2, 252: 4, 253: 8}


class _Blob:
    """Values of a blob, one after another (bincode 2, standard configuration)."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        if count > len(self._data) - self._at:
            raise DamagedError(f"a blob ends {count - len(self._data) + self._at} bytes early")
        self._at += count
        return self._data[self._at - count : self._at]

    def whole(self) -> int:
        first = self.take(1)[0]
        if first <= 250:
            return first
        if first not in _MARKS:
            raise DamagedError(f"a blob has the mark {first} where a number should be")
        return int.from_bytes(self.take(_MARKS[first]), "little")

    def text(self) -> str:
        return self.take(self.whole()).decode()

    def real(self, kind: str) -> float:
        return struct.unpack(f"<{kind}", self.take(struct.calcsize(kind)))[0]

    def is_some(self) -> bool:
        return self.take(1)[0] == 1

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)


def import_blt_burn(source: str | Path, target: Sidecar) -> int:
    """Add the nodes and edges of a sidecar of BLT-Burn to one of ours.

    BLT-Burn writes `extra` of a leaf without types. Keys that are known are decoded; from an
    unknown one on, the rest is kept as hexadecimal digits under `undecoded`. How it was sharded
    and replicated is kept if nothing was in the target before.

    Args:
        source: A `.hypergraph.db` with tables `nodes` and `hyperedges`.
        target: Where they are added, all or none.

    Returns:
        How many nodes were added.

    Raises:
        ArgumentError: There is no such file.
        DamagedError: It is something else, or a blob cannot be decoded.
    """
    place = Path(source)
    if not place.is_file():
        raise ArgumentError(f"there is no file `{place}`")
    try:
        database = sqlite3.connect(f"{place.resolve().as_uri()}?mode=ro", uri=True)
        try:
            nodes = [data for (data,) in database.execute("SELECT data FROM nodes ORDER BY id")]
            edges = [
                data for (data,) in database.execute("SELECT data FROM hyperedges ORDER BY id")
            ]
            facts = _facts(database)
        finally:
            database.close()
        with target._database:
            target._keep_whole(facts)
            return _added(nodes, edges, target)
    except (sqlite3.Error, ValueError, OverflowError, DamagedError) as problem:
        raise DamagedError(f"`{place}` is not a sidecar of BLT-Burn: {problem}") from problem


def _facts(database: sqlite3.Connection) -> dict[str, Any]:
    """How the document was sharded and replicated, if it says so."""
    tables = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'"
    if database.execute(tables).fetchone() is None:
        return {}
    rows = database.execute("SELECT key, value FROM meta")
    return {key: json.loads(value) for key, value in rows if key in WHOLE.values()}


def _added(nodes: list[bytes], edges: list[bytes], target: Sidecar) -> int:
    decoded = [_edge(_Blob(blob)) for blob in edges]
    if any(at >= len(nodes) for _, _, members in decoded for at in members):
        raise DamagedError("an edge has a node that does not exist")
    parents = {
        members[1]: members[0]
        for label, _, members in decoded
        if label == "contains" and len(members) == 2
    }
    numbers: dict[int, int] = {}
    for at, blob in enumerate(nodes):
        parent = numbers.get(parents.get(at, -1))
        numbers[at] = _node(_Blob(blob), parent, target)
    for label, weight, members in decoded:
        target.connect(label, [numbers[at] for at in members], weight)
    return len(numbers)


def _edge(blob: _Blob) -> tuple[str, float, list[int]]:
    members = [blob.whole() for _ in range(blob.whole())]
    return blob.text(), blob.real("f"), members


def _node(blob: _Blob, parent: int | None, target: Sidecar) -> int:
    kind = blob.whole()
    if kind == 0:
        return target._node("trunk", None, blob.text(), start=0, end=blob.whole())
    if kind == 1:
        return target._node("branch", parent, blob.text(), modality=blob.text())
    if kind != 2:
        raise DamagedError(f"a node is of kind {kind}; expected 0, 1 or 2")
    label = blob.text() if blob.is_some() else None
    if not blob.is_some():
        return target._leaf(parent or 0, Leaf(label, 0, 0))
    start, end, confidence = blob.whole(), blob.whole(), blob.real("f")
    extra = _extra(blob) if blob.is_some() else {}
    leaf = Leaf(label, start, end, round(confidence, 6), extra)
    return target._leaf(parent or 0, leaf)


def _extra(blob: _Blob) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(blob.whole()):
        name = blob.text()
        if name in _WHOLE:
            found[name] = blob.whole()
        elif name in _REAL:
            found[name] = blob.real("d")
        elif name in _TEXT:
            found[name] = blob.text()
        else:
            found["undecoded"] = {name: blob.rest().hex()}
            break
    return found
