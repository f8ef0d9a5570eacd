"""Sequences packed into rows of equal length: the longest that fits comes first."""

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hotgrid.errors import ArgumentError

# Length, minus the order of arrival, the sequence.
_Waiting = tuple[int, int, NDArray[np.integer]]


class Packer:
    """Pack sequences into rows of `length` without padding.

    A row takes the longest waiting sequence that fits into what is left of it, again and
    again. When none fits, the shortest is cut to fill the row. Every sequence begins with
    `start`, so every row does too.

    Sequences are arrays whose first axis is packed: tokens as `[n]`, or tokens and their
    weights as `[n, 2]`.

    Args:
        length: Length of a row.
        start: What every sequence begins with, such as the BOS token; shape `[k, ...]`.
        waiting: How many sequences to choose from. More leave fewer cuts.
        rest: `"keep"` packs what was cut off as another sequence, and splits sequences that
            are longer than a row. `"drop"` loses it.

    Attributes:
        packed: Elements in rows so far, without `start`.
        dropped: Elements that were cut off and lost.

    Raises:
        ArgumentError: `length` leaves no place after `start`, or `rest` is unknown.

    Example:
        >>> packer = Packer(6, start=np.array([0]), waiting=3)
        >>> texts = [np.array([1, 1]), np.array([2, 2, 2, 2]), np.array([3]), np.array([4])]
        >>> for row in packer.rows(texts):
        ...     print(row)
        [0 2 2 2 2 0]
        [0 1 1 0 3 0]
    """

    def __init__(
        self,
        length: int,
        *,
        start: NDArray[np.integer],
        waiting: int = 1024,
        rest: Literal["keep", "drop"] = "keep",
    ) -> None:
        if length <= len(start):
            raise ArgumentError(
                f"`length` {length} leaves no place after a start of {len(start)}: choose more"
            )
        if rest not in ("keep", "drop"):
            raise ArgumentError(f"`rest` is {rest!r}; it is 'keep' or 'drop'")
        if waiting < 1:
            raise ArgumentError(f"`waiting` must be at least 1, got {waiting}")
        self.length = length
        self.start = start
        self.waiting = waiting
        self.rest = rest
        self.packed = self.dropped = 0
        # Elements that wait, with the start of each sequence.
        self._arrived = self._size = 0
        self._waiting: list[_Waiting] = []

    def rows(self, sequences: Iterable[NDArray[np.integer]]) -> Iterator[NDArray[np.integer]]:
        """Yield full rows. At the end of the sequences an incomplete row stays unpacked."""
        source = iter(sequences)
        while True:
            while len(self._waiting) < self.waiting or self._size < self.length:
                sequence = next(source, None)
                if sequence is None:
                    break
                self.add(sequence)
            if self._size < self.length:
                return
            yield self._row()

    def add(self, sequence: NDArray[np.integer]) -> None:
        """Add a sequence to those that wait. An empty one is ignored."""
        if self.rest == "keep":
            step = self.length - len(self.start)
            for first in range(0, len(sequence), step):
                self._put(np.concatenate([self.start, sequence[first : first + step]]))
        elif len(sequence):
            self._put(np.concatenate([self.start, sequence]))

    @property
    def state(self) -> list[NDArray[np.integer]]:
        """The waiting sequences in the order of arrival, each with its start."""
        return [each for _, _, each in sorted(self._waiting, key=lambda entry: -entry[1])]

    @state.setter
    def state(self, sequences: Iterable[NDArray[np.integer]]) -> None:
        self._waiting, self._arrived, self._size = [], 0, 0
        for sequence in sequences:
            self._put(sequence)

    def _put(self, sequence: NDArray[np.integer]) -> None:
        self._arrived += 1
        self._size += len(sequence)
        insort(self._waiting, (len(sequence), -self._arrived, sequence), key=_order)

    def _row(self) -> NDArray[np.integer]:
        shape = (self.length, *self.start.shape[1:])
        row = np.empty(shape, dtype=self.start.dtype)
        at = 0
        while at < self.length:
            space = self.length - at
            place = bisect_right(self._waiting, (space, 0), key=_order) - 1
            if place >= 0:
                length, _, sequence = self._take(place)
                row[at : at + length] = sequence
                self.packed += length - len(self.start)
                at += length
                continue
            at = self._cut_into(row, at)
        return row

    def _take(self, place: int) -> _Waiting:
        entry = self._waiting.pop(place)
        self._size -= entry[0]
        return entry

    def _cut_into(self, row: NDArray[np.integer], at: int) -> int:
        """Fill the rest of a row with the beginning of the shortest sequence."""
        shortest = self._waiting[0][0]
        # Of equally short ones, the first that arrived.
        place = bisect_right(self._waiting, (shortest, 0), key=_order) - 1
        length, _, sequence = self._take(place)
        space, start = self.length - at, len(self.start)
        row[at:] = sequence[:space]
        used = max(0, space - start)
        self.packed += used
        if self.rest == "keep":
            self._put(np.concatenate([self.start, sequence[start + used :]]))
        else:
            self.dropped += length - start - used
        return self.length


def _order(entry: _Waiting | tuple[int, int]) -> tuple[int, int]:
    return entry[0], entry[1]
