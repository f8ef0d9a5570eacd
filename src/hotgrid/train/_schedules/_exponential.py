"""Exponential decay."""

from dataclasses import dataclass

from hotgrid.errors import ArgumentError

from ._schedule import StepSchedule


@dataclass(frozen=True)
class ExponentialDecay(StepSchedule):
    """Exponential decay by `factor` every `every` steps, smoothly, and never below `floor`.

    Example:
        >>> [ExponentialDecay(factor=0.5, every=10)(step) for step in (0, 10, 20)]
        [1.0, 0.5, 0.25]
    """

    factor: float
    every: int = 1
    start: float = 1.0
    floor: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.factor <= 0 or self.every < 1:
            raise ArgumentError(
                f"{self} is not a decay; `factor` must be above 0, `every` 1 or more"
            )

    def at(self, step: int) -> float:
        """Return the value."""
        return max(self.floor, self.start * self.factor ** (step / self.every))
