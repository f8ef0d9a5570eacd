"""The contents of a checkpoint: written last, checked before use."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotgrid._version import __version__
from hotgrid.errors import DamagedError, StoreError
from hotgrid.files import read_regular

from ._shard import BLOCK, Region, Spec, bytes_of, fault_in_cover, is_known

MANIFEST = "manifest.json"
_FORMAT, _VERSION = "hotgrid checkpoint", 1
_LARGEST_MANIFEST = 1 << 28
_FILE_NAME = re.compile(r"rank-[0-9]{5,9}\.safetensors")
_SUM = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class FileRecord:
    """One file: its size, the checksum of each block, and the pieces that it holds."""

    name: str
    size: int
    sums: Sequence[str]
    pieces: Mapping[str, Region]


@dataclass(frozen=True)
class Manifest:
    """The contents of a checkpoint."""

    step: int
    tensors: Mapping[str, Spec]
    files: Sequence[FileRecord]
    extra: Mapping[str, Any]
    block: int = BLOCK


def manifest_bytes(manifest: Manifest) -> bytes:
    """The manifest as it is written: JSON, with a checksum of itself."""
    body: dict[str, Any] = {
        "format": _FORMAT,
        "version": _VERSION,
        "hotgrid": __version__,
        "step": manifest.step,
        "block_bytes": manifest.block,
        "tensors": {
            n: {"dtype": s.dtype, "shape": s.shape} for n, s in manifest.tensors.items()
        },
        "files": [
            {
                "name": file.name,
                "bytes": file.size,
                "sums": " ".join(file.sums),
                "pieces": {n: r._asdict() for n, r in file.pieces.items()},
            }
            for file in manifest.files
        ],
        "extra": manifest.extra,
    }
    return json.dumps({**body, "checksum": _checksum(body)}, indent=1).encode() + b"\n"


def read_manifest(folder: Path, step: int) -> Manifest:
    """Read and check the manifest of a step.

    Raises:
        DamagedError: It is missing, not JSON, changed, or contradicts itself.
        StoreError: It is of a version that this hotgrid does not know.
    """
    path = folder / MANIFEST
    if folder.is_symlink():
        raise DamagedError(f"`{path}` is damaged: its folder is a link")
    text = read_regular(path, _LARGEST_MANIFEST)
    try:
        body = _opened(text)
        _expect(body["version"] != _VERSION or body["step"] == step, f"its step is not {step}")
        if body["version"] == _VERSION:
            return _parsed(body)
    except (KeyError, TypeError, AttributeError) as problem:
        reason = f"an entry is missing or of the wrong kind ({problem})"
        raise DamagedError(f"`{path}` is damaged: {reason}") from None
    except (ValueError, RecursionError) as problem:
        raise DamagedError(f"`{path}` is damaged: {problem}") from None
    raise StoreError(
        f"`{path}` is version {body['version']!r} of the format, written by hotgrid "
        f"{body.get('hotgrid')}; this is hotgrid {__version__} and reads version {_VERSION}: "
        "use the hotgrid that wrote it, or a newer one"
    )


def _opened(text: bytes) -> dict[str, Any]:
    """The parts that every version of the format has: a name, a version, a checksum."""
    body = json.loads(text)
    _expect(isinstance(body, dict) and body.get("format") == _FORMAT, "it is not a manifest")
    _expect(body.pop("checksum") == _checksum(body), "it does not have its own checksum")
    return body


def _checksum(body: Mapping[str, Any]) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return f"{zlib.crc32(text.encode()):08x}"


def _parsed(body: Mapping[str, Any]) -> Manifest:
    block = _whole_number(body["block_bytes"])
    _expect(1 << 12 <= block <= 1 << 26, f"it has blocks of {block} bytes")
    tensors = {name: _spec(name, spec) for name, spec in body["tensors"].items()}
    files = [_file_record(entry, tensors, block) for entry in body["files"]]
    names = [file.name for file in files]
    _expect(len(names) == len(set(names)), "it lists a file twice")
    for name, spec in tensors.items():
        pieces = [file.pieces[name] for file in files if name in file.pieces]
        fault = fault_in_cover(spec.shape, pieces)
        _expect(fault is None, f"`{name}` is not whole: {fault}")
    extra = body["extra"]
    _expect(isinstance(extra, dict), "`extra` is not an object")
    return Manifest(body["step"], tensors, files, extra, block)


def _spec(name: str, entry: Mapping[str, Any]) -> Spec:
    dtype = entry["dtype"]
    _expect(is_known(dtype), f"`{name}` has the dtype {dtype!r}")
    return Spec(dtype, _whole_numbers(entry["shape"]))


def _file_record(
    entry: Mapping[str, Any], tensors: Mapping[str, Spec], block: int
) -> FileRecord:
    name, size, sums = entry["name"], _whole_number(entry["bytes"]), entry["sums"].split()
    # Only names that we give: an untrusted path could lead anywhere.
    _expect(
        bool(_FILE_NAME.fullmatch(name)), f"{name!r} is not the name of a file of a checkpoint"
    )
    _expect(
        len(sums) == -(-size // block) and all(map(_SUM.fullmatch, sums)),
        f"the checksums of {name} are not as many as its blocks",
    )
    pieces = {key: _region(key, each, tensors) for key, each in entry["pieces"].items()}
    needed = sum(bytes_of(tensors[key].dtype, r.shape) for key, r in pieces.items())
    _expect(needed <= size, f"{name} of {size} bytes cannot hold its pieces of {needed}")
    return FileRecord(name, size, sums, pieces)


def _region(name: str, entry: Mapping[str, Any], tensors: Mapping[str, Spec]) -> Region:
    region = Region(_whole_numbers(entry["offset"]), _whole_numbers(entry["shape"]))
    shape = tensors[name].shape
    fits = len(region.offset) == len(region.shape) == len(shape) and all(
        end <= n for end, n in zip(region.end, shape, strict=True)
    )
    _expect(fits, f"a piece of `{name}` is outside of it")
    return region


def _whole_numbers(values: Sequence[Any]) -> tuple[int, ...]:
    _expect(isinstance(values, list) and len(values) <= 64, "a shape is not a list of numbers")
    return tuple(map(_whole_number, values))


def _whole_number(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise ValueError(f"{str(value)[:40]} is not a size")
    return value


def _expect(holds: bool, reason: str) -> None:
    if not holds:
        raise ValueError(reason)
