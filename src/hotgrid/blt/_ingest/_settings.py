"""`IngestSettings`: what decides about the output of an ingest."""

import hashlib
import json
import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from hotgrid.blt._entropy._files import config_beside, model_file
from hotgrid.blt._segment._registry import SEGMENTERS
from hotgrid.errors import ArgumentError, near

FORMAT = 1
"""Grows when the same input and settings give other bits."""

MIB = 1 << 20
ENTROPIES = ("float32", "float16", "none")
PDF_VIEWS = ("raw", "text", "image", "multiview")
# They refuse inputs, or choose among them, and change nothing of the documents themselves.
_NOT_OF_A_DOCUMENT = {
    "limit",
    "shards",
    "near",
    "duplicates",
    "file_bytes",
    "decoded_bytes",
    "archive_bytes",
    "columns",
    "leaves",
    "include",
    "exclude",
}


@dataclass(frozen=True)
class IngestSettings:
    """Everything besides the input that decides about the output.

    Attributes:
        segmenter: One of `SEGMENTERS`.
        threshold: In nats; by default the calibrated one for `size`.
        size: The mean length of patches; by default that of the segmenter.
        most: Split longer patches.
        model: `nano`, the entropy model that comes with hotgrid, or a safetensors file with an
            entropy model or an n-gram table; by default the table that comes with hotgrid.
        device: Where an entropy model runs.
        compiled: Compile an entropy model, for much data.
        document_bytes: Longer texts, and bytes of no known kind, are cut into documents of
            about this size.
        entropies: How the entropy of each byte is kept: `float32`, `float16` for three digits,
            or `none`. Patches follow the exact ones, and keep their mean.
        media: Whether patches of images, audio and video are their `pieces` (16 x 16
            pixels, 160 samples, a frame), or follow the segmenter as text does: `bytes`.
        pdf: Which views of a PDF to take: `raw`, `text`, `image`, or `multiview` for all.
        columns: The columns of rows to take; by default all that hold text or media.
        include: Names of files in folders and archives to take, as patterns; all by default.
            A pattern matches a name, or the path from the given folder on: `in/drafts/*`.
        exclude: Names to leave out, as patterns.
        limit: Stop after this many documents.
        duplicates: Whether to keep documents with equal bytes.
        near: Leave out documents this similar to an earlier one, from 0 to 1.
        shards: Pack documents into this many files; by default each has its own.
        leaves: What leaves of the sidecar are: `pieces` of the modality, or `patches`.
        file_bytes: The largest file, row or member that is read as a whole.
        decoded_bytes: The most bytes that a document may have once it is decoded.
        archive_bytes: The most bytes that an archive may have once it is unpacked.

    Raises:
        ArgumentError: A setting is out of range.
    """

    segmenter: str = "threshold"
    threshold: float | None = None
    size: float | None = None
    most: int | None = None
    model: str | None = None
    device: str = "cpu"
    compiled: bool = False
    document_bytes: int = MIB
    entropies: str = "float32"
    media: str = "pieces"
    pdf: str = "text"
    columns: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    limit: int | None = None
    duplicates: bool = False
    near: float | None = None
    shards: int | None = None
    leaves: str = "pieces"
    file_bytes: int = 64 * MIB
    decoded_bytes: int = 64 * MIB
    archive_bytes: int = 1 << 36

    def __post_init__(self) -> None:
        _expect_one_of("segmenter", self.segmenter, SEGMENTERS)
        _expect_one_of("pdf", self.pdf, PDF_VIEWS)
        _expect_one_of("entropies", self.entropies, ENTROPIES)
        _expect_one_of("media", self.media, ("pieces", "bytes"))
        _expect_one_of("leaves", self.leaves, ("pieces", "patches"))
        for name in ("most", "limit", "shards"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ArgumentError(f"`{name}` must be at least 1, got {value}")
        for name in ("file_bytes", "decoded_bytes", "archive_bytes"):
            if getattr(self, name) < 1:
                raise ArgumentError(f"`{name}` must be at least 1, got {getattr(self, name)}")
        if self.document_bytes < 1024:
            raise ArgumentError(
                f"`document_bytes` must be at least 1024, got {self.document_bytes}"
            )
        if self.document_bytes > self.file_bytes:
            raise ArgumentError(
                f"`document_bytes` ({self.document_bytes}) is above `file_bytes` "
                f"({self.file_bytes}), the most that is read at once"
            )
        if self.near is not None and not 0 < self.near <= 1:
            raise ArgumentError(f"`near` is a similarity from 0 to 1, got {self.near}")
        for name in ("threshold", "size"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise ArgumentError(f"`{name}` must be a finite number, got {value}")

    def to_table(self) -> dict[str, Any]:
        """The settings as JSON values."""
        found = asdict(self)
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in found.items()
        }

    @classmethod
    def from_table(cls, table: dict[str, Any]) -> "IngestSettings":
        """Settings from what `to_table` gave."""
        known = {each.name for each in fields(cls)}
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in table.items()
            if name in known
        }
        return cls(**values)

    def of_documents(self) -> dict[str, Any]:
        """The settings that decide a document's bits; the model counts by its bytes."""
        table = self.to_table()
        kept = {name: table[name] for name in table if name not in _NOT_OF_A_DOCUMENT}
        kept["model"] = _hash_of(self.model)
        return {"format": FORMAT, **kept}

    def key(self) -> str:
        """A hash of `of_documents`."""
        text = json.dumps(self.of_documents(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def _expect_one_of(what: str, name: str, names: Any) -> None:
    if name not in names:
        raise ArgumentError(
            f"`{what}` is `{name}`{near(name, names)} (there are {', '.join(names)})"
        )


def _hash_of(model: str | None) -> str:
    """The SHA-256 of a model's file or files."""
    if model is None:
        return "n-gram table of hotgrid"
    place = model_file(model)
    files = sorted(place.glob("*.safetensors")) if place.is_dir() else [place]
    if not files or not all(each.is_file() for each in files):
        raise ArgumentError(f"there is no model `{model}`")
    beside = config_beside(place)
    if beside.is_file():
        # It can say how many heads there are, which weights do not.
        files.append(beside)
    whole = hashlib.sha256()
    for each in files:
        with each.open("rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()
