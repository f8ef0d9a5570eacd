"""The loss, weighted by the number of items that it is a mean over."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from ._metric import Metric, Seen, Sums, Window


@dataclass(frozen=True)
class Loss(Metric):
    """The mean loss: that of all items, if the step function returns their `count`.

    Example:
        >>> seen = Seen({"loss": torch.tensor(0.5), "count": 4.0})
        >>> [float(each) for each in Loss().sums(seen)]
        [2.0, 4.0]
    """

    name: ClassVar[str] = "loss"  # pyright: ignore[reportIncompatibleMethodOverride]
    better: ClassVar[Literal["lowest", "highest"] | None] = "lowest"

    def sums(self, seen: Seen) -> Sums:
        """Return the summed loss and the count."""
        outputs = seen.outputs
        loss, count = outputs["loss"].detach(), outputs.get("count")
        return (loss, 1.0) if count is None else (loss * count, count)

    def value(self, sums: Sequence[float], window: Window) -> float | None:
        """Return the mean."""
        return sums[0] / sums[1] if sums[1] else None
