"""Warm-up, stable, decay."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from hotgrid.errors import ArgumentError, near

from ._schedule import StepSchedule

_Shape = Literal["linear", "cosine", "sqrt"]


@dataclass(frozen=True)
class WSD(StepSchedule):
    """Warm-up, stable, decay: a linear rise, `peak` for some steps, and a fall to `end`.

    Args:
        warmup: Steps of the rise, which is that of `Warmup`.
        stable: Steps at `peak`.
        decay: Steps of the fall.
        peak: The highest value.
        end: The last value.
        shape: How it falls: `linear`, `cosine`, or `sqrt`, which is `1 - sqrt(share)`.

    Example:
        >>> [WSD(warmup=2, stable=2, decay=4)(step) for step in range(9)]
        [0.5, 1.0, 1.0, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0]
    """

    warmup: int
    stable: int
    decay: int
    peak: float = 1.0
    end: float = 0.0
    shape: _Shape = "linear"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shape not in get_args(_Shape):
            raise ArgumentError(
                f"`shape` of WSD is {self.shape!r}; expected {', '.join(get_args(_Shape))}"
                f"{near(self.shape, get_args(_Shape))}"
            )

    @property
    def length(self) -> int:
        """The steps of all three parts."""
        return self.warmup + self.stable + self.decay

    def at(self, step: int) -> float:
        """Return the value."""
        falling = step - self.warmup - self.stable
        if step + 1 < self.warmup:
            return self.peak * ((step + 1) / self.warmup)
        if falling < 0:
            return self.peak
        if falling >= self.decay:
            return self.end
        share = falling / self.decay
        left = {
            "linear": 1 - share,
            "cosine": (1 + math.cos(math.pi * share)) / 2,
            "sqrt": 1 - math.sqrt(share),
        }[self.shape]
        return self.end + (self.peak - self.end) * left
