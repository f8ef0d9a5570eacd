"""`Segmenter`: what all ways to cut bytes into patches have in common."""

from abc import ABC, abstractmethod
from itertools import pairwise

import torch
from torch import Tensor

from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError


class SegmentStream(ABC):
    """Where patches begin in bytes that come in parts; each part continues the one before."""

    @abstractmethod
    def push(self, data: bytes) -> Tensor:
        """Return for each of these bytes whether a patch begins with it."""


class Segmenter(ABC):
    """Cuts bytes into patches. The first byte always begins one.

    A causal one decides about a byte without those that come after it. Then it can be used
    while bytes are generated, and has a `stream`. See `CausalSegmenter`.
    """

    @property
    def causal(self) -> bool:
        """Whether later bytes never move an earlier boundary."""
        return False

    @abstractmethod
    def starts(self, data: bytes) -> Tensor:
        """Return for each byte whether a patch begins with it, as bool of shape `(t,)`."""

    def stream(self) -> SegmentStream:
        """Return a stream for bytes that come in parts.

        Raises:
            ArgumentError: The segmenter is not causal.
        """
        raise ArgumentError(
            f"{type(self).__name__} looks at bytes after a boundary, so it needs all of them "
            "at once: use `starts`"
        )

    def lengths(self, data: bytes) -> Tensor:
        """Return the lengths of patches, which add up to the number of bytes."""
        return patch_lengths(self.starts(data))

    def patches(self, data: bytes) -> list[bytes]:
        """Return the patches.

        Example:
            >>> Static(3).patches(b"abcdefgh")
            [b'abc', b'def', b'gh']
        """
        ends = [0, *self.lengths(data).cumsum(0).tolist()]
        return [data[begin:end] for begin, end in pairwise(ends)]


class CausalSegmenter(Segmenter):
    """A segmenter that decides about each byte without later ones.

    Subclasses define how a stream continues; `starts` is one push of all bytes.
    """

    @property
    def causal(self) -> bool:
        """True."""
        return True

    @abstractmethod
    def stream(self) -> SegmentStream:
        """Return a stream for bytes that come in parts."""

    def starts(self, data: bytes) -> Tensor:
        """Return for each byte whether a patch begins with it, as bool of shape `(t,)`."""
        return self.stream().push(data)


@checked(starts="t", returns="p")
def patch_lengths(starts: Tensor) -> Tensor:
    """Return the lengths of patches that begin where it is True, as int64.

    Example:
        >>> patch_lengths(torch.tensor([True, False, True, True]))
        tensor([2, 1, 1])

    Raises:
        ArgumentError: The first byte begins no patch.
    """
    if not len(starts):
        return torch.empty(0, dtype=torch.int64, device=starts.device)
    if not bool(starts[0]):
        raise ArgumentError("`starts` is False for the first byte, which begins a patch")
    where = starts.nonzero()[:, 0]
    return torch.diff(where, append=where.new_full((1,), len(starts)))
