"""The manifest of a corpus: what is in it, with checksums."""

import hashlib
import json
from pathlib import Path
from typing import Any

from hotgrid.blt._ingest._settings import FORMAT
from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.files import read_regular

from ._names import MANIFEST

_MOST = 1 << 26


def seal(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest with a checksum of its own."""
    return {**manifest, "checksum": _checksum(manifest)}


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """Read the manifest of a corpus.

    Raises:
        ArgumentError: There is none.
        DamagedError: It is not what was written, or of another version.
    """
    path = Path(folder) / MANIFEST
    if not path.exists():
        raise ArgumentError(
            f"there is no finished corpus in `{folder}`: `{path}` is missing; "
            "`hotgrid ingest PATHS --out DIR` makes one, and --resume finishes one"
        )
    try:
        found = json.loads(read_regular(path, _MOST))
        stored = found.pop("checksum")
    except (ValueError, KeyError, AttributeError, RecursionError) as problem:
        raise DamagedError(f"`{path}` is damaged: {problem}") from None
    if _checksum(found) != stored:
        raise DamagedError(f"`{path}` is damaged: its checksum does not fit")
    if found.get("format") != FORMAT:
        raise DamagedError(
            f"`{path}` has the format {found.get('format')}, and this hotgrid reads {FORMAT}"
        )
    return found


def _checksum(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
