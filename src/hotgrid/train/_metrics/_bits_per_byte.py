"""Bits per byte: a loss of text that does not depend on the vocabulary."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from ._metric import Metric, Seen, Sums, Window


@dataclass(frozen=True)
class BitsPerByte(Metric):
    """The loss in bits for every byte of the text.

    The step function returns the mean loss in nats, the `count` of tokens it is the mean
    over, and the `bytes` that these tokens stand for.

    Example:
        >>> outputs = {"loss": torch.tensor(2.0), "count": 30.0, "bytes": 120.0}
        >>> sums = [float(each) for each in BitsPerByte().sums(Seen(outputs))]
        >>> round(BitsPerByte().value(sums, Window()), 4)
        0.7213
    """

    name: ClassVar[str] = "bits per byte"  # pyright: ignore[reportIncompatibleMethodOverride]
    better: ClassVar[Literal["lowest", "highest"] | None] = "lowest"

    def sums(self, seen: Seen) -> Sums:
        """Return the nats and the bytes."""
        count = seen.need("count", self.name)
        return seen.outputs["loss"].detach() * count, seen.need("bytes", self.name)

    def value(self, sums: Sequence[float], window: Window) -> float | None:
        """Return bits per byte."""
        return sums[0] / math.log(2) / sums[1] if sums[1] else None
