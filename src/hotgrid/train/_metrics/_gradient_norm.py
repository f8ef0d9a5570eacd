"""The norm of the gradient of one group of parameters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from ._metric import Metric, Seen, Sums, Window


@dataclass(frozen=True)
class GradientNorm(Metric):
    """The mean norm of the gradient of a group, before it is clipped.

    The trainer adds one for every group of the optimizer.

    Example:
        >>> seen = Seen({}, norms={"all": torch.tensor(2.0)})
        >>> GradientNorm("all").name, GradientNorm("all").sums(seen)
        ('gradient norm, all', (tensor(2.), 1.0))
    """

    group: str = "all"
    per: ClassVar[Literal["batch", "step"]] = "step"

    @property
    def name(self) -> str:
        """Such as `gradient norm, all`."""
        return f"gradient norm, {self.group}"

    def sums(self, seen: Seen) -> Sums:
        """Return the norm, and 1 for the step; nothing for a group that has none."""
        norm = seen.norms.get(self.group)
        return (0.0, 0.0) if norm is None else (norm, 1.0)

    def value(self, sums: Sequence[float], window: Window) -> float | None:
        """Return the mean."""
        return sums[0] / sums[1] if sums[1] else None
