"""Near duplicates: MinHash by one permutation, with buckets to find candidates."""

import base64

import numpy as np
from numpy.typing import NDArray

SHINGLE = 12
"""Bytes of a shingle: about two words."""
BINS = 128
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)


def signature(data: bytes) -> NDArray[np.uint64]:
    """The least hash of the shingles that fall into each of `BINS` bins.

    Letters count without case, and runs of white space as one space. The share of equal
    bins of two signatures estimates the Jaccard similarity of their sets of shingles. An
    empty bin takes the value of the next one that is not, marked with the distance.
    """
    hashes = _mixed(_shingles(data))
    least = np.full(BINS, _EMPTY)
    np.minimum.at(least, (hashes >> np.uint64(57)).astype(np.intp), hashes)
    filled = np.flatnonzero(least != _EMPTY)
    if not len(filled):
        return least
    at = np.arange(BINS)
    following = filled[np.searchsorted(filled, at) % len(filled)]
    distance = ((following - at) % BINS).astype(np.uint64)
    return least[following] + distance * _FACTOR


def similarity(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> float:
    """The estimated Jaccard similarity of two documents, from their signatures."""
    return float((a == b).mean())


def pack(found: NDArray[np.uint64]) -> str:
    """A signature as text."""
    return base64.b64encode(found.astype("<u8").tobytes()).decode()


def unpack(text: str) -> NDArray[np.uint64]:
    """Parse a signature."""
    return np.frombuffer(base64.b64decode(text), "<u8")


class NearDuplicates:
    """Finds the first earlier document that is similar to a given one.

    Args:
        threshold: The similarity from which documents are duplicates.
    """

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._rows = _rows_of_a_band(threshold)
        self._buckets: dict[bytes, list[int]] = {}
        self._kept: list[tuple[str, NDArray[np.uint64]]] = []

    def find(self, name: str, found: NDArray[np.uint64]) -> tuple[str, float] | None:
        """The name and the similarity of a duplicate; if there is none, this one is kept."""
        keys = [
            at.to_bytes(2) + found[at : at + self._rows].tobytes()
            for at in range(0, BINS, self._rows)
        ]
        candidates = sorted({each for key in keys for each in self._buckets.get(key, ())})
        for each in candidates:
            other, known = self._kept[each]
            alike = similarity(found, known)
            if alike >= self._threshold:
                return other, alike
        for key in keys:
            self._buckets.setdefault(key, []).append(len(self._kept))
        self._kept.append((name, found))
        return None


def _rows_of_a_band(threshold: float) -> int:
    """Bins that must be equal at once: as many as still find 99 of 100 duplicates."""
    for rows in (32, 16, 8, 4, 2):
        if (1 - threshold**rows) ** (BINS // rows) <= 0.01:
            return rows
    return 1


def _shingles(data: bytes) -> NDArray[np.uint64]:
    plain = np.frombuffer(b" ".join(data.lower().split()), np.uint8).astype(np.uint64)
    width = min(SHINGLE, len(plain))
    count = len(plain) - width + 1 if width else 0
    found = np.zeros(count, np.uint64)
    for offset in range(width):
        found = found * _FACTOR + plain[offset : offset + count] + np.uint64(1)
    return found


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A bijection of 64 bits whose every bit depends on all (the finish of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * _MIX[0]
    values = (values ^ (values >> np.uint64(27))) * _MIX[1]
    return values ^ (values >> np.uint64(31))
