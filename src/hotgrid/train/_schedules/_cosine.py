"""Half a period of a cosine."""

import math
from dataclasses import dataclass

from ._schedule import StepSchedule


@dataclass(frozen=True)
class CosineDecay(StepSchedule):
    """Half a cosine from `start` at step 0 to `end` at step `steps`, then `end`.

    Example:
        >>> [round(CosineDecay(steps=4)(step), 3) for step in range(6)]
        [1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    """

    steps: int
    start: float = 1.0
    end: float = 0.0

    @property
    def length(self) -> int:
        """The steps of the decay."""
        return self.steps

    def at(self, step: int) -> float:
        """Return the value."""
        if step >= self.steps:
            return self.end
        share = (1 + math.cos(math.pi * step / self.steps)) / 2
        return self.end + (self.start - self.end) * share
