"""`AtMost`: longer patches of another segmenter are split."""

import sys
from dataclasses import dataclass

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError

from ._segmenter import Segmenter, SegmentStream


@dataclass(frozen=True)
class AtMost(Segmenter):
    """The patches of another segmenter; those longer than `length` bytes are split.

    It is causal if the other segmenter is.

    Args:
        segmenter: The segmenter whose patches are split.
        length: The longest patch in bytes.

    Raises:
        ArgumentError: The length is below 1.
    """

    segmenter: Segmenter
    length: int

    def __post_init__(self) -> None:
        if type(self.length) is not int or self.length < 1:
            raise ArgumentError(
                f"`length` is {self.length!r}; expected a number of bytes from 1"
            )

    @property
    def causal(self) -> bool:
        """Whether the wrapped segmenter is causal."""
        return self.segmenter.causal

    def starts(self, data: bytes) -> Tensor:
        """Return for each byte whether a patch begins with it, as bool of shape `(t,)`."""
        return _split(self.segmenter.starts(data), 0, self.length)[0]

    def stream(self) -> SegmentStream:
        """Return a stream for bytes that come in parts."""
        return _Stream(self.segmenter.stream(), self.length)


class _Stream(SegmentStream):
    def __init__(self, inner: SegmentStream, length: int) -> None:
        self._inner, self._length, self._open = inner, length, 0

    def push(self, data: bytes) -> Tensor:
        starts, self._open = _split(self._inner.push(data), self._open, self._length)
        return starts


def _split(starts: Tensor, unfinished: int, length: int) -> tuple[Tensor, int]:
    """Starts including those of split patches, and the bytes of the last patch so far.

    Args:
        starts: Where patches of the other segmenter begin.
        unfinished: The bytes of its last patch before these.
        length: The longest patch.
    """
    at = torch.arange(len(starts), device=starts.device)
    # The last start up to each byte; before the first one it lies in the past.
    begun = torch.where(starts, at, -unfinished).cummax(0).values
    inside = at - begun
    return inside % min(length, sys.maxsize) == 0, int(inside[-1]) + 1 if len(
        starts
    ) else unfinished
