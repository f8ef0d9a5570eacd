"""Many documents in one safetensors file, written as a stream."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from safetensors import safe_open

from hotgrid.files import whole_file

from ._layout import WIDTHS, header

SHARDS = "shards"
_NAMES = (
    "embeddings",
    "prominence",
    "entropies",
    "patch_entropies",
    "patch_lengths",
    "bytes",
)
_OF_NOTHING = {
    "entropies": "F32",
    "patch_entropies": "F32",
    "patch_lengths": "I32",
    "bytes": "U8",
}


def shard_name(number: int, count: int) -> str:
    """The file of a shard, in the folder of the corpus."""
    return f"{SHARDS}/shard_{number:05}_of_{count:05}.safetensors"


def bounds(sizes: Sequence[int], count: int) -> list[int]:
    """Where shards begin and end, so that they have about the same bytes; count + 1 numbers.

    A document is in the shard that its middle falls into.
    """
    ends = np.cumsum(np.asarray(sizes, dtype=np.int64))
    total = int(ends[-1]) if len(ends) else 0
    middles = ends * 2 - np.asarray(sizes, dtype=np.int64)
    marks = [2 * total * number / count for number in range(1, count)]
    return [0, *np.searchsorted(middles, marks).tolist(), len(sizes)]


def write_shard(path: Path, files: Sequence[Path]) -> None:
    """Write documents one after another: the tensors of each name joined.

    Beside the names of a document there are `document_bytes` and `document_patches`, how
    much of the joined tensors belongs to each. Memory does not grow with the shard.
    """
    shapes = [_shapes(each) for each in files]
    dtypes = _dtypes(files[0]) if files else _OF_NOTHING
    # Wider ones first, so that all are aligned.
    names = sorted(
        (name for name in _NAMES if name in dtypes), key=lambda name: -WIDTHS[dtypes[name]]
    )
    kinds: list[tuple[str, str, list[int]]] = [
        (name, "I64", [len(files)]) for name in ("document_bytes", "document_patches")
    ]
    for name in names:
        rows = sum(each[name][0] for each in shapes)
        kinds.append((name, dtypes[name], [rows, *(shapes[0][name][1:] if shapes else [])]))
    width = shapes[0]["embeddings"][1] if "embeddings" in names else 0
    metadata = {
        "format": "blt_patches_v3" if width else "blt_patches_v2",
        "num_documents": str(len(files)),
        "num_patches": str(sum(each["patch_lengths"][0] for each in shapes)),
        "total_bytes": str(sum(each["bytes"][0] for each in shapes)),
        "embed_dim": str(width),
        "metadata_file": "corpus.db",
    }
    with whole_file(path) as aside, aside.open("wb") as file:
        file.write(header(kinds, metadata))
        for name in ("bytes", "patch_lengths"):
            file.write(np.array([each[name][0] for each in shapes], "<i8").tobytes())
        for name in names:
            _joined(file, name, files)


def _joined(file: BinaryIO, name: str, files: Sequence[Path]) -> None:
    for each in files:
        with safe_open(each, "np") as document:
            file.write(np.ascontiguousarray(document.get_tensor(name)).tobytes())


def _shapes(path: Path) -> dict[str, list[int]]:
    with safe_open(path, "np") as file:
        return {name: list(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


def _dtypes(path: Path) -> dict[str, str]:
    with safe_open(path, "np") as file:
        return {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118


def documents_of_shard(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the tensors of every document of a shard, without the others in memory."""
    with safe_open(path, "np") as file:
        sizes = file.get_tensor("document_bytes").tolist()
        counts = file.get_tensor("document_patches").tolist()
        slices = {name: file.get_slice(name) for name in _NAMES if name in file.keys()}  # noqa: SIM118
        at = patch = 0
        for size, count in zip(sizes, counts, strict=True):
            yield {
                name: part[at : at + size]
                if name in ("bytes", "entropies")
                else part[patch : patch + count]
                for name, part in slices.items()
            }
            at, patch = at + size, patch + count
