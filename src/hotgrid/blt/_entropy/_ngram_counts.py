"""Counting n-grams: probabilities of the next byte, and the table of their entropies."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotgrid.errors import ArgumentError

from ._ngram_table import DIRECT, MOST_NATS, NgramTable, slots

Keys = NDArray[np.uint64]
Floats = NDArray[np.float64]
_BYTE = np.uint64(8)


@dataclass(frozen=True)
class _Order:
    """Counts of one length of context, sorted.

    Attributes:
        keys: Each context and next byte that occurs, as a number, the next byte lowest.
        p: The probability of the next byte.
        contexts: Each context that occurs.
        total: How often.
        kinds: How many different bytes follow it.
        nats: The entropy of the byte that follows.
    """

    keys: Keys
    counts: Floats
    p: Floats
    contexts: Keys
    total: Floats
    kinds: Floats
    nats: Floats


class NgramCounts:
    """Counts of n-grams, interpolated from the longest context to the shortest.

    A context that was seen n times, with t different bytes after it, gives a byte that
    followed c times the probability (c + t q) / (n + t), where q is what the context without
    its first byte gives (Witten and Bell's method C).

    Args:
        documents: The texts.
        order: The longest context in bytes, at most 7.

    Raises:
        ArgumentError: No document is longer than a context, or the order is out of range.
    """

    def __init__(self, documents: Iterable[bytes], order: int = 5) -> None:
        if not DIRECT <= order <= 7:
            raise ArgumentError(f"`order` is {order}; expected {DIRECT} to 7 bytes")
        parts = [np.frombuffer(each, dtype=np.uint8) for each in documents if each]
        if max(map(len, parts), default=0) <= order:
            raise ArgumentError(
                f"no document is longer than a context of {order} bytes; give longer ones, or "
                "a lower `order`"
            )
        data = np.concatenate(parts)
        sizes = np.array([len(each) for each in parts])
        begins = np.repeat(np.cumsum(sizes) - sizes, sizes)
        self.bytes = len(data)
        # How many bytes of its document are before each byte.
        before = np.arange(len(data)) - begins
        self._orders: list[_Order] = []
        keys = np.zeros(len(data), dtype=np.uint64)
        for size in range(order + 1):
            keys[size:] |= data[: len(data) - size].astype(np.uint64) << np.uint64(8 * size)
            self._orders.append(self._counted(keys[before >= size], size))

    @property
    def order(self) -> int:
        """The longest context in bytes."""
        return len(self._orders) - 1

    def _counted(self, keys: Keys, size: int) -> _Order:
        found, count = np.unique(keys, return_counts=True)
        counts = count.astype(np.float64)
        contexts, first = np.unique(found >> _BYTE, return_index=True)
        kinds = np.diff(np.append(first, len(found))).astype(np.float64)
        total = np.add.reduceat(counts, first)
        q, nats = self._shorter(found, contexts, size)
        weight = kinds / (total + kinds)
        p = (counts + np.repeat(kinds, kinds.astype(np.intp)) * q) / np.repeat(
            total + kinds, kinds.astype(np.intp)
        )
        # Bytes that were never seen after a context keep `weight` times their q.
        seen_q = np.add.reduceat(q, first)
        seen_q_log_q = np.add.reduceat(q * np.log(q), first)
        unseen = weight * (nats + seen_q_log_q) - weight * np.log(weight) * (1 - seen_q)
        entropy = -np.add.reduceat(p * np.log(p), first) + np.maximum(unseen, 0)
        return _Order(found, counts, p, contexts, total, kinds, entropy)

    def _shorter(self, keys: Keys, contexts: Keys, size: int) -> tuple[Floats, Floats]:
        """Probabilities and entropies of contexts without their first byte."""
        if not size:
            return np.full(len(keys), 1 / 256), np.full(len(contexts), math.log(256))
        below = self._orders[-1]
        kept = np.uint64(256**size - 1)
        places = np.searchsorted(below.keys, keys & kept)
        whose = np.searchsorted(below.contexts, contexts & np.uint64(256 ** (size - 1) - 1))
        # An n-gram holds its shorter ones, so all of them were counted.
        return below.p[places], below.nats[whose]

    def probabilities(self, data: bytes) -> Floats:
        """Return the probability of each byte of a document given those before it."""
        text = np.frombuffer(data, dtype=np.uint8)
        p = np.full(len(text), 1 / 256)
        keys = np.zeros(len(text), dtype=np.uint64)
        for size, order in enumerate(self._orders):
            keys[size:] |= text[: max(0, len(text) - size)].astype(np.uint64) << np.uint64(
                8 * size
            )
            here = keys[size:]
            whose, known = _find(order.contexts, here >> _BYTE)
            place, seen = _find(order.keys, here)
            count = np.where(seen, order.counts[place], 0.0)
            total, kinds = order.total[whose], order.kinds[whose]
            better = (count + kinds * p[size:]) / (total + kinds)
            p[size:] = np.where(known, better, p[size:])
        return p

    def entropies(self, data: bytes) -> Floats:
        """Return the entropy of each byte of a document given those before it, in nats."""
        text = np.frombuffer(data, dtype=np.uint8)
        nats = np.full(len(text), self._orders[0].nats[0])
        keys = np.zeros(len(text), dtype=np.uint64)
        for size, order in enumerate(self._orders[1:], 1):
            shift = np.uint64(8 * (size - 1))
            keys[size:] |= text[: max(0, len(text) - size)].astype(np.uint64) << shift
            whose, known = _find(order.contexts, keys[size:])
            nats[size:] = np.where(known, order.nats[whose], nats[size:])
        return nats

    def bits_per_byte(self, documents: Iterable[bytes]) -> float:
        """Return the mean of -log2 of the probabilities of all bytes."""
        bits, count = 0.0, 0
        for each in documents:
            bits -= float(np.log2(self.probabilities(each)).sum())
            count += len(each)
        return bits / max(1, count)

    def table(
        self,
        slot_bits: tuple[int, ...] = (17, 18, 19),
        *,
        thresholds: Mapping[str, Mapping[str, float]] | None = None,
        card: Mapping[str, Any] | None = None,
    ) -> NgramTable:
        """Return the entropies as a table of a fixed size.

        Of contexts that share a slot the one stays whose entropy would be missed most: the
        difference to that of the shorter context, times how often it occurs.

        Args:
            slot_bits: The sizes of the hashed tables of 3, 4, ... bytes, as powers of two.
            thresholds: See `ByteModel`.
            card: Where the table comes from.

        Raises:
            ArgumentError: There are more tables than orders.
        """
        if len(slot_bits) > self.order - DIRECT:
            raise ArgumentError(
                f"{len(slot_bits)} hashed tables need an order of {DIRECT + len(slot_bits)}; "
                f"this one is {self.order}"
            )
        direct = [_stored(self._orders[0].nats[:1])]
        for size in range(1, DIRECT + 1):
            order = self._orders[size]
            # The number of a context has its last byte lowest, so shorter ones repeat.
            whole = np.tile(direct[-1], 256)
            whole[order.contexts.astype(np.intp)] = _stored(order.nats)
            direct.append(whole)
        hashed = [
            self._hashed(size, 1 << bits) for size, bits in enumerate(slot_bits, DIRECT + 1)
        ]
        return NgramTable(direct, hashed, thresholds=thresholds, card=card)

    def _hashed(self, size: int, slot_count: int) -> NDArray[np.uint16]:
        order, below = self._orders[size], self._orders[size - 1]
        kept = np.uint64(256 ** (size - 1) - 1)
        whose, _ = _find(below.contexts, order.contexts & kept)
        score = order.total * np.abs(order.nats - below.nats[whose])
        rank = np.argsort(score, kind="stable")
        where, check = slots(order.contexts[rank], slot_count)
        table = np.zeros(slot_count, dtype=np.uint16)
        # The last one written to a slot stays.
        table[where] = (check << np.uint16(8)) | _stored(order.nats[rank])
        return table


def _find(among: Keys, wanted: Keys) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Where keys are in a sorted array, and whether they are."""
    places = np.minimum(np.searchsorted(among, wanted), len(among) - 1)
    return places, among[places] == wanted


def _stored(nats: Floats) -> NDArray[np.uint8]:
    return np.rint(np.clip(nats, 0, MOST_NATS) * (255 / MOST_NATS)).astype(np.uint8)
