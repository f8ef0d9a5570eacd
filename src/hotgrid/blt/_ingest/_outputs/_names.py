"""The files of a corpus, in its folder."""

from pathlib import Path

from ._document_file import SIDECAR
from ._shards import SHARDS

MANIFEST = "manifest.json"
LIST = "documents.jsonl"
QUARANTINE = "quarantine.jsonl"
DUPLICATES = "duplicates.jsonl"
HISTOGRAM = "entropy_histogram.json"
REPORT = "report.html"
COMPLETE = "complete.json"
SPOOL = "stdin"
DOCUMENTS = "documents"

WRITTEN = (
    MANIFEST,
    LIST,
    QUARANTINE,
    DUPLICATES,
    HISTOGRAM,
    REPORT,
    COMPLETE,
    SPOOL,
    SIDECAR,
    SHARDS,
    DOCUMENTS,
    "units",
)
"""The files that an ingest may leave in its folder."""


def size_of(path: Path) -> int:
    """The bytes of a file; 0 if it is not there."""
    return path.stat().st_size if path.is_file() else 0


def document_file(name: str) -> str:
    """The file of a document by its id, in the folder of the corpus."""
    return f"{DOCUMENTS}/{name[:2]}/{name}.safetensors"
