"""One document in a safetensors file, with the names of BLT-Burn."""

import hashlib
import json
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from hotgrid.blt._ingest._encode import Encoded
from hotgrid.blt._ingest._modalities._modality import View
from hotgrid.blt._sidecar._graph import Branch, Leaf
from hotgrid.errors import DamagedError
from hotgrid.files import whole_file

from ._layout import safetensors

KEY = "hotgrid.ingest"
SIDECAR = "corpus.db"
FINE = 0.02
"""The width in nats of the bins that documents count entropies in."""


def write_document(
    path: Path,
    source_hash: str,
    modality: str,
    views: Sequence[View],
    found: Encoded,
    *,
    left_out: Container[str] = (),
) -> dict[str, Any]:
    """Write a document atomically, and return what the list of documents says about it.

    It is not synced to the disk: there are many, and `ingest` syncs them at the end.
    """
    embed = 0 if found.embeddings is None else found.embeddings.shape[1]
    row = {
        "source_hash": source_hash,
        "modality": modality,
        "bytes": len(found.data),
        "patches": len(found.lengths),
        "views": _tables(views),
        "entropy": count_entropies(found.entropies),
    }
    metadata = {
        "format": "blt_patches_v3" if embed else "blt_patches_v2",
        "num_patches": str(len(found.lengths)),
        "total_bytes": str(len(found.data)),
        "embed_dim": str(embed),
        "metadata_file": SIDECAR,
        KEY: json.dumps({"row": row, "pieces": [_pieces(each) for each in views if each.data]}),
    }
    tensors = {name: each for name, each in tensors_of(found).items() if name not in left_out}
    written = safetensors(tensors, metadata)
    with whole_file(path, synced=False) as aside:
        aside.write_bytes(written)
    return {**row, "file_bytes": len(written), "sha256": hashlib.sha256(written).hexdigest()}


def tensors_of(found: Encoded) -> dict[str, NDArray[Any]]:
    """The tensors of a document by name."""
    tensors: dict[str, NDArray[Any]] = {
        "bytes": found.data,
        "patch_lengths": found.lengths,
        "entropies": found.entropies,
        "patch_entropies": found.patch_entropies,
    }
    if found.embeddings is not None and found.prominence is not None:
        tensors |= {"embeddings": found.embeddings, "prominence": found.prominence}
    return tensors


def read_row(path: Path) -> dict[str, Any]:
    """The entry in the list of documents for a file that already exists.

    Raises:
        DamagedError: It is not what `write_document` has written.
    """
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = file.tell()
    row = _stored(path)["row"]
    return {**row, "file_bytes": size, "sha256": digest}


def read_branches(path: Path, leaves: str) -> list[Branch]:
    """The views of a document for the sidecar.

    Args:
        path: The file of the document.
        leaves: Whether leaves are the `pieces` of its views, or its `patches`.
    """
    stored = _stored(path)
    views = stored["row"]["views"]
    if leaves == "pieces":
        every = [[Leaf(*each) for each in some] for some in stored["pieces"]]
    else:
        every = _patch_leaves(path, views, stored["pieces"])
    return [
        Branch(view["label"], view["modality"], some)
        for view, some in zip(views, every, strict=True)
    ]


def _patch_leaves(
    path: Path, views: list[Mapping[str, Any]], pieces: list[list[Any]]
) -> list[list[Leaf]]:
    with safe_open(path, "np") as file:
        ends = np.cumsum(file.get_tensor("patch_lengths"), dtype=np.int64)
        means = file.get_tensor("patch_entropies")
    starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
    every = []
    for view, own in zip(views, pieces, strict=True):
        first, last = np.searchsorted(starts, [view["start"], view["end"]])
        source = own[0][4].get("source_id") if own else None
        some = []
        for index in range(int(first), int(last)):
            extra: dict[str, Any] = {
                "patch_index": index,
                "patch_length": int(ends[index] - starts[index]),
            }
            extra["mean_entropy"] = round(float(means[index]), 4)
            if source is not None and index == first:
                extra["source_id"] = source
            begin, end = int(starts[index] - view["start"]), int(ends[index] - view["start"])
            some.append(Leaf(f"patch_{index}", begin, end, 1.0, extra))
        every.append(some)
    return every


def _stored(path: Path) -> dict[str, Any]:
    try:
        with safe_open(path, "np") as file:
            return json.loads((file.metadata() or {})[KEY])
    except (SafetensorError, OSError, ValueError, KeyError) as problem:
        raise DamagedError(f"`{path}` is not a document of an ingest: {problem}") from problem


def _tables(views: Sequence[View]) -> list[dict[str, Any]]:
    found, at = [], 0
    for view in views:
        if view.data:
            end = at + len(view.data)
            table = {"label": view.label, "modality": view.modality, "start": at, "end": end}
            found.append(table | ({"extra": view.extra} if view.extra else {}))
            at = end
    return found


def _pieces(view: View) -> list[list[Any]]:
    return [
        [each.label, each.start, each.end, each.confidence, each.extra] for each in view.pieces
    ]


def count_entropies(entropies: NDArray[np.floating]) -> dict[str, Any]:
    """Sums and counts of entropies, which add up over documents."""
    exact = entropies.astype(np.float64)
    counts = np.bincount((exact / FINE).astype(np.int64))
    bins = np.flatnonzero(counts)
    return {
        "count": len(entropies),
        "sum": float(exact.sum()),
        "squares": float(np.square(exact).sum()),
        "least": float(exact.min()),
        "most": float(exact.max()),
        "bins": {str(each): int(counts[each]) for each in bins},
    }
