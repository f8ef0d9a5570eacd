"""Leaves of a corpus with what the sphere needs of them, in batches."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotgrid.blt._ingest._corpus import Corpus, IngestedDocument
from hotgrid.blt._ingest._outputs._document_file import SIDECAR
from hotgrid.blt._ingest._outputs._names import MANIFEST
from hotgrid.blt._sidecar._sidecar import read_only
from hotgrid.errors import ArgumentError, DamagedError

from ._zones import ZoneRule

_LEAVES = 4096
_BYTES = 1 << 20


@dataclass
class LeafBatch:
    """Some leaves, in the order of their numbers.

    Attributes:
        nodes: Their numbers in the sidecar.
        zones: Where they belong.
        entropies: The mean over the bytes of each.
        prominence: The largest of the patches of each; empty if it is not known.
        texts: Their bytes; empty if they are not known.
        embeddings: The mean over the bytes of each; empty if it is not known.
        documents: How many documents they are of.
        size: How many bytes there are in all.
    """

    nodes: list[int] = field(default_factory=list)
    zones: list[str] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)
    prominence: list[float] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    embeddings: list[NDArray[np.float32]] = field(default_factory=list)
    documents: int = 0
    size: int = 0

    def is_full(self) -> bool:
        """Whether it should be worked on before more is added."""
        return len(self.nodes) >= _LEAVES or self.size >= _BYTES


@dataclass(frozen=True)
class Source:
    """A sidecar, and the corpus that it belongs to.

    Attributes:
        database: The file of the sidecar.
        corpus: None for a sidecar alone, such as one that was imported from BLT-Burn.
    """

    database: Path
    corpus: Corpus | None

    @property
    def documents(self) -> int:
        """How many there are."""
        if self.corpus is not None:
            return len(self.corpus)
        with closing(read_only(self.database)) as database:
            return database.execute(
                "SELECT count(*) FROM nodes WHERE kind = 'trunk'"
            ).fetchone()[0]

    @property
    def has_embeddings(self) -> bool:
        """Whether documents have embeddings."""
        if self.corpus is None:
            return False
        return next((bool("embeddings" in each.tensors) for each in self.corpus), False)

    def batches(self, rule: ZoneRule, *, texts: bool, embeddings: bool) -> Iterator[LeafBatch]:
        """Yield all leaves that have bytes; with their bytes and embeddings if asked for.

        Raises:
            DamagedError: The sidecar is not that of the corpus.
            ArgumentError: Nothing is known about the entropy of a leaf.
        """
        with closing(read_only(self.database)) as database:
            if self.corpus is None:
                yield from _of_sidecar(database, rule)
                return
            batch = LeafBatch()
            trunks = database.execute(
                "SELECT id, label FROM nodes WHERE kind = 'trunk' ORDER BY id"
            )
            for document in self.corpus:
                trunk = trunks.fetchone()
                if trunk is None or trunk[1] != document.row["source_hash"]:
                    raise DamagedError(
                        f"`{self.database}` is not the sidecar of the corpus in "
                        f"`{self.corpus.folder}`: it has other documents"
                    )
                _add(batch, database, trunk[0], document, rule, texts, embeddings)
                if batch.is_full():
                    yield batch
                    batch = LeafBatch()
            if batch.documents:
                yield batch


def source_at(path: str | Path) -> Source:
    """The sidecar in a folder, or in a file with or without its corpus beside it.

    Raises:
        ArgumentError: There is no sidecar.
    """
    place = Path(path)
    if place.is_dir():
        return Source(place / SIDECAR, Corpus(place))
    if not place.is_file():
        raise ArgumentError(
            f"there is no corpus and no sidecar at `{place}`; `hotgrid ingest PATHS --out DIR` "
            "makes one"
        )
    beside = place.name == SIDECAR and (place.parent / MANIFEST).is_file()
    return Source(place, Corpus(place.parent) if beside else None)


def _add(
    batch: LeafBatch,
    database: sqlite3.Connection,
    trunk: int,
    document: IngestedDocument,
    rule: ZoneRule,
    texts: bool,
    embeddings: bool,
) -> None:
    batch.documents += 1
    tensors, views = document.tensors, document.row["views"]
    branches = _children(database, trunk)
    if len(branches) != len(views):
        raise DamagedError(f"`{document.row['name']}` has other views in the sidecar")
    if "entropies" in tensors:
        entropies = tensors["entropies"]
    else:  # leaves begin where patches do
        entropies = np.repeat(tensors["patch_entropies"], tensors["patch_lengths"])
    sums = np.concatenate([[0.0], np.cumsum(entropies, dtype=np.float64)])
    ends = np.cumsum(tensors["patch_lengths"], dtype=np.int64)
    for (branch, label, _, _), view in zip(branches, views, strict=True):
        zone = rule(document.row["name"], label)
        for leaf, _, start, end in _children(database, branch):
            begin, stop = view["start"] + start, view["start"] + end
            if stop > view["end"]:
                raise DamagedError(
                    f"a leaf of `{document.row['name']}` ends after its view: {end:,} bytes"
                )
            if begin == stop:
                continue
            batch.nodes.append(leaf)
            batch.zones.append(zone)
            batch.entropies.append(float(sums[stop] - sums[begin]) / (stop - begin))
            batch.size += stop - begin
            if texts:
                batch.texts.append(tensors["bytes"][begin:stop].tobytes())
            if "prominence" in tensors:
                first, last = np.searchsorted(ends, [begin + 1, stop]).tolist()
                some = slice(first, last + 1)
                batch.prominence.append(float(tensors["prominence"][some].max()))
                if embeddings:
                    sizes = tensors["patch_lengths"][some]
                    mean = np.average(tensors["embeddings"][some], axis=0, weights=sizes)
                    batch.embeddings.append(mean.astype(np.float32))


def _children(database: sqlite3.Connection, parent: int) -> list[tuple[int, str, int, int]]:
    return database.execute(
        'SELECT id, label, "start", "end" FROM nodes WHERE parent = ? ORDER BY id', [parent]
    ).fetchall()


def _of_sidecar(database: sqlite3.Connection, rule: ZoneRule) -> Iterator[LeafBatch]:
    """Leaves with what their `extra` says: `mean_entropy`, and `coherence_score` if it does."""
    batch = LeafBatch()
    for node, extra, label in database.execute(
        "SELECT leaf.id, leaf.extra, branch.label FROM nodes leaf LEFT JOIN nodes branch "
        "ON branch.id = leaf.parent WHERE leaf.kind = 'leaf' ORDER BY leaf.id"
    ):
        known: dict[str, Any] = json.loads(extra) if extra else {}
        if not isinstance(known.get("mean_entropy"), int | float):
            raise ArgumentError(
                f"nothing is known about the entropy of node {node}: its corpus is not beside "
                "the sidecar, and its `extra` has no `mean_entropy`"
            )
        entropy = float(known["mean_entropy"])
        batch.nodes.append(node)
        batch.zones.append(rule("", label or ""))
        batch.entropies.append(entropy)
        if isinstance(known.get("coherence_score"), int | float):
            # It is the square of the prominence over the entropy.
            squared = max(0.0, known["coherence_score"]) * (max(0.0, entropy) + 1e-6)
            batch.prominence.append(squared**0.5)
        if batch.is_full():
            yield batch
            batch = LeafBatch()
    yield batch
