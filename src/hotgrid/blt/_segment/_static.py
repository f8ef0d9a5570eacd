"""`Static`: patches of a fixed length."""

import sys
from dataclasses import dataclass

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError

from ._segmenter import CausalSegmenter, SegmentStream


@dataclass(frozen=True)
class Static(CausalSegmenter):
    """Patches of `size` bytes; the last may be shorter.

    Raises:
        ArgumentError: The size is below 1.
    """

    size: int = 4

    def __post_init__(self) -> None:
        if type(self.size) is not int or self.size < 1:
            raise ArgumentError(f"`size` is {self.size!r}; expected a number of bytes from 1")

    def stream(self) -> SegmentStream:
        """Return a stream for bytes that come in parts."""
        return _Stream(self.size)


class _Stream(SegmentStream):
    def __init__(self, size: int) -> None:
        self._size, self._at = min(size, sys.maxsize), 0

    def push(self, data: bytes) -> Tensor:
        begin, self._at = self._at, self._at + len(data)
        return torch.arange(begin, self._at) % self._size == 0
