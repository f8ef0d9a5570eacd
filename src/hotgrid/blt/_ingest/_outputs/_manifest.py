"""The manifest of a corpus: what is in it, with checksums."""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hotgrid.blt._ingest._settings import FORMAT
from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.files import read_regular, whole_file

from ._names import MANIFEST

_MOST = 1 << 26


def seal(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest with a checksum of its own."""
    return {**manifest, "checksum": _checksum(manifest)}


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """Read the manifest of a corpus.

    Raises:
        ArgumentError: There is no manifest.
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
        raise DamagedError(f"`{path}` is damaged: its checksum does not match")
    if found.get("format") != FORMAT:
        raise DamagedError(
            f"`{path}` has the format {found.get('format')}, and this hotgrid reads {FORMAT}"
        )
    return found


def write_manifest(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Write the manifest of a corpus atomically, and return it with its checksum."""
    sealed = seal(manifest)
    with whole_file(folder / MANIFEST) as aside:
        aside.write_text(json.dumps(sealed, indent=2) + "\n", encoding="utf-8")
    return sealed


def summed(path: Path) -> dict[str, Any]:
    """The entry of a file in a manifest: its size and its checksum."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": os.fstat(file.fileno()).st_size, "sha256": digest}


@contextmanager
def replaced_file(folder: Path, name: str) -> Iterator[Path]:
    """Yield a path to write a file of a finished corpus to, which then takes its place.

    The manifest names the checksums of both files until the new one is written, so that the
    corpus is whole whenever the process is killed.

    Raises:
        DamagedError: The file is not what the manifest says.
    """
    manifest = read_manifest(folder)
    known = manifest["files"][name]
    old = summed(folder / name)
    if old not in (_sums(known), known.get("next")):
        raise DamagedError(
            f"`{folder / name}` is damaged: its checksum does not match; see "
            f"`hotgrid ingest verify {folder}`"
        )
    with whole_file(folder / name) as aside:
        yield aside
        new = summed(aside)
        manifest["files"][name] = {**old, "next": new}
        write_manifest(folder, manifest)
    manifest["files"][name] = new
    write_manifest(folder, manifest)


def _sums(known: dict[str, Any]) -> dict[str, Any]:
    return {key: known[key] for key in ("bytes", "sha256")}


def _checksum(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
