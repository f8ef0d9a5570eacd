"""One safetensors file: written as a stream with checksums, opened with care.

The format is small: the length of the header in 8 bytes, the header as JSON, the bytes of
the tensors. Writing it here makes checksums in the same pass, takes tensors from a GPU
piece by piece, and lets other threads run. Reading is left to the safetensors library.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from safetensors import SafetensorError, safe_open

from hotgrid.errors import DamagedError

from ._block_writer import BlockWriter
from ._dtypes import bytes_of, name_of

if TYPE_CHECKING:
    from torch import Tensor

    from ._shard import Spec


class Written(NamedTuple):
    """A written file: its size, and the checksum of each block."""

    size: int
    sums: list[str]


def write_shard_file(path: Path, tensors: Mapping[str, Tensor]) -> Written:
    """Write tensors into a new file, and sync it to the disk before returning."""
    import torch

    # Wide types first: then every tensor begins at a multiple of its element size.
    ordered = dict(sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0])))
    header = _header(ordered)
    size = len(header) + sum(tensor.nbytes for tensor in ordered.values())
    with BlockWriter(path, size) as writer:
        writer.add(torch.frombuffer(header, dtype=torch.uint8))
        for tensor in ordered.values():
            dense = tensor.detach().resolve_neg().contiguous()
            writer.add(dense.reshape(-1).view(torch.uint8))
        return Written(size, writer.finish())


def _header(tensors: Mapping[str, Tensor]) -> bytearray:
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, tensor in tensors.items():
        start, end = end, end + tensor.nbytes
        entries[name] = {
            "dtype": name_of(tensor.dtype),
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return bytearray(len(text).to_bytes(8, "little") + text)


def checked_places(path: Path, expected: Mapping[str, Spec]) -> dict[str, range]:
    """Compare the header of a file with the expected one; return the bytes of each tensor.

    Raises:
        DamagedError: The header is invalid, or lists other tensors.
        OSError: The file cannot be read.
    """
    try:
        with safe_open(path, framework="pt") as file:
            found = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            shown = {n: (s.get_dtype(), tuple(s.get_shape())) for n, s in found.items()}
    except SafetensorError as problem:
        raise DamagedError(f"`{path}` is damaged: {problem}") from None
    if shown != dict(expected):
        raise DamagedError(
            f"`{path}` is damaged: it contains other tensors than the manifest lists"
        )
    # The library has checked the header, but does not return the offsets.
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    starts = {name: 8 + length + header[name]["data_offsets"][0] for name in expected}
    return {
        name: range(starts[name], starts[name] + bytes_of(*spec))
        for name, spec in expected.items()
    }
