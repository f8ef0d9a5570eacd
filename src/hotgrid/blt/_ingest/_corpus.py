"""`Corpus`: a finished ingest, to read, check, describe and export."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from hotgrid.errors import ArgumentError, DamagedError, near

from ._outputs._document_file import SIDECAR
from ._outputs._histogram import binned
from ._outputs._manifest import read_manifest
from ._outputs._names import HISTOGRAM, LIST, QUARANTINE
from ._outputs._shards import documents_of_shard


@dataclass(frozen=True)
class IngestedDocument:
    """A document of a corpus.

    Attributes:
        row: What the list of documents says about it.
        tensors: `bytes`, `patch_lengths`, `patch_entropies`, `entropies` unless they were left
            out, and with a model `embeddings` and `prominence`.
    """

    row: dict[str, Any]
    tensors: dict[str, NDArray[Any]]

    @property
    def data(self) -> bytes:
        """The bytes of its views, one after another."""
        return self.tensors["bytes"].tobytes()


class Corpus:
    """The corpus in a folder that `ingest` has finished.

    Args:
        folder: The folder.

    Attributes:
        folder: The folder.
        manifest: What is in it.

    Raises:
        ArgumentError: There is no finished corpus.
        DamagedError: Its manifest is damaged.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.manifest = read_manifest(self.folder)

    def __len__(self) -> int:
        """How many documents there are."""
        return self.manifest["documents"]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield what is known of each document, in order."""
        yield from _lines(self.folder / LIST)

    def quarantined(self) -> Iterator[dict[str, Any]]:
        """Yield the name of everything that could not be read, and why."""
        yield from _lines(self.folder / QUARANTINE)

    def __iter__(self) -> Iterator[IngestedDocument]:
        """Yield the documents in order; one at a time is in memory."""
        rows = self.rows()
        if self.manifest["shards"]:
            for shard in self.manifest["shards"]:
                try:
                    found = documents_of_shard(self.folder / shard["file"])
                    for tensors in found:
                        yield IngestedDocument(next(rows), tensors)
                except (SafetensorError, OSError, StopIteration) as problem:
                    raise DamagedError(f"`{shard['file']}` is damaged: {problem}") from problem
            return
        for row in rows:
            yield IngestedDocument(row, _tensors(self.folder / row["file"]))

    def find(self, wanted: str) -> IngestedDocument:
        """Return a document by its name, its number, or the first letters of its id.

        Raises:
            ArgumentError: There is none, or more than one.
        """
        found = [
            number
            for number, row in enumerate(self.rows())
            if row["name"] == wanted
            or str(number) == wanted
            or (len(wanted) >= 4 and row["id"].startswith(wanted))
        ]
        if len(found) != 1:
            names = [row["name"] for row in self.rows()]
            what = f"{len(found)} documents match" if found else "there is no document"
            raise ArgumentError(f"{what} `{wanted}`{near(wanted, names)}")
        if not self.manifest["shards"]:
            row = next(row for at, row in enumerate(self.rows()) if at == found[0])
            return IngestedDocument(row, _tensors(self.folder / row["file"]))
        return next(each for at, each in enumerate(self) if at == found[0])

    def histogram(self, bins: int = 50) -> dict[str, Any]:
        """Recount entropies into equal bins; in the schema of BLT-Burn.

        Raises:
            ArgumentError: There is less than one bin, or the corpus has no entropies of bytes.
        """
        if self.manifest["settings"].get("entropies") == "none":
            raise ArgumentError(
                f"`{self.folder}` was made with `--entropies none`, so they cannot be counted "
                f"again; {HISTOGRAM} there has 50 bins"
            )
        span = (self.manifest["entropy"]["min"], self.manifest["entropy"]["max"])
        return binned((each.tensors["entropies"] for each in self), span, bins)

    def damage(self) -> Iterator[str]:
        """Yield a line for each file that is missing or changed; none if all is well."""
        lists = True
        for name, wanted in self.manifest["files"].items():
            problem = _compared(self.folder / name, wanted["bytes"], wanted["sha256"])
            if problem and "next" in wanted:
                # A process was killed while it replaced the file.
                new = wanted["next"]
                problem = _compared(self.folder / name, new["bytes"], new["sha256"])
            if problem:
                lists = lists and name != LIST
                yield f"{name}: {problem}"
        if not lists:
            yield f"{LIST}: documents cannot be checked without it"
            return
        if not self.manifest["shards"]:
            for row in self.rows():
                problem = _compared(self.folder / row["file"], row["file_bytes"], row["sha256"])
                problem = problem or _inconsistent(self.folder / row["file"], row)
                if problem:
                    yield f"{row['file']} ({row['name']}): {problem}"
        else:
            for each in self.manifest["shards"]:
                problem = _other_number(self.folder / each["file"], each["end"] - each["begin"])
                if problem:
                    yield f"{each['file']}: {problem}"

    def has_all_files(self) -> bool:
        """Whether every file is there with its size; what is in them is not read."""
        for name, known in self.manifest["files"].items():
            sizes = {known["bytes"], known.get("next", known)["bytes"]}
            if _size_of(self.folder / name) not in sizes:
                return False
        rows = [] if self.manifest["shards"] else self.rows()
        return all(_size_of(self.folder / row["file"]) == row["file_bytes"] for row in rows)

    @property
    def sidecar(self) -> Path:
        """The file of the sidecar."""
        return self.folder / SIDECAR


def _size_of(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)
    except (OSError, ValueError) as problem:
        raise DamagedError(f"`{path}` cannot be read: {problem}") from problem


def _tensors(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with safe_open(path, "np") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as problem:
        raise DamagedError(f"`{path}` cannot be read: {problem}") from problem


def _compared(path: Path, size: int, digest: str) -> str | None:
    if path.is_symlink() or not path.is_file():
        return "it is missing"
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
        length = file.tell()
    if length != size:
        return f"it has {length:,} bytes instead of {size:,}"
    return None if found == digest else "its checksum does not match"


def _other_number(path: Path, count: int) -> str | None:
    try:
        with safe_open(path, "np") as file:
            found = file.get_slice("document_bytes").get_shape()
    except (SafetensorError, OSError):
        return None  # its checksum was said to be wrong
    return None if found == [count] else f"it has {found} documents instead of {count}"


def _inconsistent(path: Path, row: dict[str, Any]) -> str | None:
    tensors = _tensors(path)
    lengths = tensors["patch_lengths"]
    if len(lengths) != row["patches"] or len(tensors["bytes"]) != row["bytes"]:
        return "its sizes are not those in the list of documents"
    if int(lengths.sum()) != row["bytes"] or bool((lengths < 1).any()):
        return "its patches do not cover its bytes"
    known = [tensors[name] for name in ("entropies", "patch_entropies") if name in tensors]
    if not all(np.isfinite(each).all() for each in known):
        return "its entropies are not finite"
    return None
