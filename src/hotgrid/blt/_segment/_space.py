"""`Space`: patches that end after a word."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ._segmenter import CausalSegmenter, SegmentStream


def _space_like() -> Tensor:
    """True for bytes but ASCII letters, digits and those that continue a UTF-8 character."""
    found = torch.ones(256, dtype=torch.bool)
    for first, last in (("0", "9"), ("A", "Z"), ("a", "z")):
        found[ord(first) : ord(last) + 1] = False
    found[0x80:0xC0] = False
    return found


_SPACE_LIKE = _space_like()


@dataclass(frozen=True)
class Space(CausalSegmenter):
    """A patch ends with the first space-like byte after another one (SpaceByte).

    Space-like are all bytes but ASCII letters and digits and those that continue a UTF-8
    character. Later ones of a row of space-like bytes belong to the next patch.
    """

    def stream(self) -> SegmentStream:
        """Return a stream for bytes that come in parts."""
        return _Stream()


class _Stream(SegmentStream):
    def __init__(self) -> None:
        # Whether the byte before the last one, and the last one, were space-like.
        self._last = torch.tensor([True, True])
        self._begun = False

    def push(self, data: bytes) -> Tensor:
        if not data:
            return torch.empty(0, dtype=torch.bool)
        codes = torch.frombuffer(bytearray(data), dtype=torch.uint8).long()
        like = torch.cat([self._last, _SPACE_LIKE[codes]])
        starts = like[1:-1] & ~like[:-2]
        self._last = like[-2:]
        if not self._begun:
            starts[0] = self._begun = True
        return starts
