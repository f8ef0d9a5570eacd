"""`NgramTable`: entropies looked up by the last bytes, without arithmetic on weights."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from torch import Tensor

from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.files import whole_file

from ._byte_model import ByteModel, EntropyStream

DIRECT = 2
"""Contexts of up to this many bytes have an entry each; longer ones are hashed."""

MOST_NATS = math.log(256)
_KEY = "hotgrid.ngram_table"
_FACTOR = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio
_BLOCK = 1 << 14  # temporaries stay in the second cache
_EMBEDDED = Path(__file__).with_name("ngram_table.safetensors")


class NgramTable(ByteModel):
    """Entropies of the next byte by the last bytes, longest known context first.

    An entry is one byte of entropy. Contexts of three bytes and more are found by a hash,
    with one byte to check that they are meant; about one unknown context in 256 is mistaken
    for a known one.

    Args:
        direct: The tables of 0, 1 and 2 bytes: 1, 256 and 65,536 entropies as uint8, where
            255 is ln 256 nats.
        hashed: The tables of 3, 4, ... bytes as uint16, check and entropy; their sizes are
            powers of two. An entry of 0 is empty.
        thresholds: See `ByteModel`.
        card: Where the table comes from.

    Raises:
        ArgumentError: A table has another size or dtype.
    """

    def __init__(
        self,
        direct: list[NDArray[np.uint8]],
        hashed: list[NDArray[np.uint16]],
        *,
        thresholds: Mapping[str, Mapping[str, float]] | None = None,
        card: Mapping[str, Any] | None = None,
    ) -> None:
        if [each.shape for each in direct] != [(256**n,) for n in range(DIRECT + 1)]:
            shapes = [each.shape for each in direct]
            raise ArgumentError(f"tables of 0, 1 and 2 bytes have the shapes {shapes}")
        for number, each in enumerate([*direct, *hashed]):
            wanted = np.uint8 if number <= DIRECT else np.uint16
            if each.dtype != wanted or each.ndim != 1 or each.size.bit_count() != 1:
                raise ArgumentError(
                    f"the table of {number} bytes is {each.dtype} of {each.shape}; expected "
                    f"{np.dtype(wanted)} and a power of two"
                )
        self.direct, self.hashed = direct, hashed
        self.thresholds = {name: dict(each) for name, each in (thresholds or {}).items()}
        self.card = dict(card or {})
        self._nats = (np.arange(256) * (MOST_NATS / 255)).astype(np.float32)

    @property
    def order(self) -> int:
        """The longest context in bytes."""
        return DIRECT + len(self.hashed)

    def entropies(self, data: bytes) -> Tensor:
        """Return the entropy in nats of each byte, looked up by those before it."""
        return self.stream().push(data)

    def stream(self) -> EntropyStream:
        """Return a stream of entropies for bytes that come in parts."""
        return _TableStream(self)

    def look_up(self, past: bytes, data: bytes) -> NDArray[np.float32]:
        """Return the entropies of bytes that follow others."""
        joined = np.frombuffer(past + data, dtype=np.uint8)
        found = np.empty(len(data), dtype=np.float32)
        for begin in range(len(past), len(joined), _BLOCK):
            end = min(begin + _BLOCK, len(joined))
            codes = self._codes(joined, begin, end)
            self._nats.take(codes, out=found[begin - len(past) : end - len(past)])
        return found

    def _codes(self, data: NDArray[np.uint8], begin: int, end: int) -> NDArray[np.uint8]:
        """Entropies of `data[begin:end]` as stored."""
        found = np.full(end - begin, self.direct[0][0])
        # The bytes before each position as a number, the last one lowest.
        context = np.zeros(end - begin, dtype=np.uint64)
        for size in range(1, self.order + 1):
            first = max(begin, size)
            if first >= end:
                break
            inside = slice(first - begin, None)
            context[inside] |= data[first - size : end - size].astype(np.uint64) << np.uint64(
                8 * (size - 1)
            )
            here = context[inside]
            if size <= DIRECT:
                found[inside] = self.direct[size].take(here.astype(np.intp))
                continue
            table = self.hashed[size - DIRECT - 1]
            where, check = slots(here, table.size)
            entry = table.take(where)
            known = (entry >> np.uint16(8)) == check
            np.copyto(found[inside], entry.astype(np.uint8), where=known)
        return found

    def save(self, path: str | Path) -> None:
        """Write the table to a safetensors file, atomically."""
        tensors: dict[str, Any] = {
            f"order_{number}": each for number, each in enumerate([*self.direct, *self.hashed])
        }
        stored = json.dumps({"thresholds": self.thresholds, "card": self.card})
        with whole_file(Path(path)) as aside:
            save_file(tensors, aside, metadata={_KEY: stored})


class _TableStream(EntropyStream):
    """Entropies of bytes that come in parts."""

    def __init__(self, table: NgramTable) -> None:
        self._table, self._past = table, b""

    def push(self, data: bytes) -> Tensor:
        if not isinstance(data, bytes | bytearray):
            raise ArgumentError(
                f"`data` is a {type(data).__name__}; expected bytes, such as `text.encode()`"
            )
        found = self._table.look_up(self._past, data)
        self._past = (self._past + data[-self._table.order :])[-self._table.order :]
        return torch.from_numpy(found)


def slots(
    contexts: NDArray[np.uint64], size: int
) -> tuple[NDArray[np.intp], NDArray[np.uint16]]:
    """Return where contexts are in a table of this size, and their check, from 1 to 255."""
    mixed = contexts * np.uint64(_FACTOR)
    where = (mixed >> np.uint64(64 - size.bit_length() + 1)).astype(np.intp)
    # Bits that do not choose the slot; 0 is for empty entries.
    check = ((mixed >> np.uint64(24)) & np.uint64(0xFF)).astype(np.uint16)
    return where, np.maximum(check, np.uint16(1), out=check)


def load_ngram_table(path: str | Path | None = None) -> NgramTable:
    """Load a table from a safetensors file; without a path the one that comes with hotgrid.

    Raises:
        ArgumentError: There is no such file.
        DamagedError: It is not the file of a table.
    """
    place = _EMBEDDED if path is None else Path(path)
    if not place.is_file():
        raise ArgumentError(f"there is no file `{place}`")
    try:
        with safe_open(place, "np") as file:
            if _KEY not in (file.metadata() or {}):
                raise DamagedError(
                    f"`{place}` is not an n-gram table from `NgramTable.save`; "
                    "`load_entropy_model` reads entropy models"
                )
            stored = json.loads((file.metadata() or {})[_KEY])
            names = [f"order_{number}" for number in range(len(file.keys()))]
            tables = [file.get_tensor(name) for name in names]
        return NgramTable(tables[: DIRECT + 1], tables[DIRECT + 1 :], **stored)
    except DamagedError:
        raise
    except (SafetensorError, OSError, ValueError, LookupError, TypeError) as problem:
        raise DamagedError(f"`{place}` is not an n-gram table: {problem}") from problem


def is_ngram_table(path: Path) -> bool:
    """Whether a safetensors file says that it is an n-gram table."""
    try:
        with safe_open(path, "np") as file:
            return _KEY in (file.metadata() or {})
    except (SafetensorError, OSError):
        return False
