"""Straight lines: warm-up and linear decay."""

from dataclasses import dataclass

from ._schedule import StepSchedule


@dataclass(frozen=True)
class Warmup(StepSchedule):
    """A linear rise to `peak`: `peak * (step + 1) / steps`, then `peak`.

    The first step already has a share of the rate, and step `steps - 1` is the first with
    all of it.

    Example:
        >>> [Warmup(steps=4)(step) for step in range(5)]
        [0.25, 0.5, 0.75, 1.0, 1.0]
    """

    steps: int
    peak: float = 1.0

    @property
    def length(self) -> int:
        """The steps of the rise."""
        return self.steps

    def at(self, step: int) -> float:
        """Return the value."""
        return self.peak if step + 1 >= self.steps else self.peak * ((step + 1) / self.steps)


@dataclass(frozen=True)
class LinearDecay(StepSchedule):
    """A straight line from `start` at step 0 to `end` at step `steps`, then `end`.

    Example:
        >>> [LinearDecay(steps=4)(step) for step in range(6)]
        [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
    """

    steps: int
    start: float = 1.0
    end: float = 0.0

    @property
    def length(self) -> int:
        """The steps of the line."""
        return self.steps

    def at(self, step: int) -> float:
        """Return the value."""
        if step >= self.steps:
            return self.end
        return self.start + (self.end - self.start) * (step / self.steps)
