"""Bytes of a file that go straight into tensors, while they are checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


class Straight:
    """Fills tensors from blocks of one file.

    Args:
        wanted: For each tensor its bytes in the file, and the tensor as flat bytes.
    """

    def __init__(self, wanted: Sequence[tuple[range, Tensor]]) -> None:
        self._wanted = wanted
        self._here = [
            (place, there.numpy().data) for place, there in wanted if not there.is_cuda
        ]

    def memory(self, start: int, size: int) -> memoryview | None:
        """The memory that these bytes belong in, if it is one piece on the CPU."""
        for place, memory in self._here:
            if place.start <= start and start + size <= place.stop:
                return memory[start - place.start :][:size]
        return None

    def fill(self, start: int, data: memoryview) -> None:
        """Copy the parts of a block to their destinations."""
        import torch

        source = torch.frombuffer(data, dtype=torch.uint8)
        for place, there in self._wanted:
            first, last = max(start, place.start), min(start + len(data), place.stop)
            if first < last:
                part = there[first - place.start : last - place.start]
                part.copy_(source[first - start : last - start])
