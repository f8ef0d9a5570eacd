"""Schedules made of schedules: one after the other, and multiplied."""

from dataclasses import dataclass

from hotgrid.errors import ArgumentError

from ._constant import Constant
from ._schedule import StepSchedule


def as_schedule(value: StepSchedule | float) -> StepSchedule:
    """A schedule as it is, a number as a constant one."""
    return value if isinstance(value, StepSchedule) else Constant(value)


def _expect_schedules(owner: object, *parts: object) -> None:
    for part in parts:
        if not isinstance(part, StepSchedule):
            raise ArgumentError(
                f"{type(owner).__name__} is made of schedules, got {part!r}; use "
                "`Constant(...)` for a number"
            )


@dataclass(frozen=True)
class Then(StepSchedule):
    """One schedule for some steps, then another, which counts from its own step 0.

    Usually written `first.then(second)`.

    Example:
        >>> Then(Constant(2.0), Constant(3.0), after=5)(5)
        3.0
    """

    first: StepSchedule
    second: StepSchedule
    after: int

    def __post_init__(self) -> None:
        super().__post_init__()
        _expect_schedules(self, self.first, self.second)

    @property
    def length(self) -> int | None:
        """The steps of both; None if the second never ends."""
        return None if self.second.length is None else self.after + self.second.length

    def at(self, step: int) -> float:
        """Return the value of whichever is in force."""
        return self.first.at(step) if step < self.after else self.second.at(step - self.after)


@dataclass(frozen=True)
class Product(StepSchedule):
    """Two schedules multiplied. Usually written `a * b`, or `0.02 * b`.

    Example:
        >>> Product(Constant(2.0), LinearDecay(steps=10))(5)
        1.0
    """

    first: StepSchedule
    second: StepSchedule

    def __post_init__(self) -> None:
        super().__post_init__()
        _expect_schedules(self, self.first, self.second)

    @property
    def length(self) -> int | None:
        """The longer of both, where a constant has none."""
        both = (self.first, self.second)
        lengths = [part.length for part in both if not isinstance(part, Constant)]
        return None if not lengths or None in lengths else max(lengths)

    def at(self, step: int) -> float:
        """Return the product."""
        return self.first.at(step) * self.second.at(step)
