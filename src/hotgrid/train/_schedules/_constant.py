"""A value that never changes."""

from dataclasses import dataclass

from ._schedule import StepSchedule


@dataclass(frozen=True)
class Constant(StepSchedule):
    """The same value at every step.

    Example:
        >>> Constant(0.1)(1000)
        0.1
    """

    value: float = 1.0

    def at(self, step: int) -> float:
        """Return the value."""
        return self.value
