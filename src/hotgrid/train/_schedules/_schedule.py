"""`StepSchedule`: a number as a function of the step, as data; and how schedules combine."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from hotgrid.errors import ArgumentError, near

from ._plot import draw_text, write_picture

_KNOWN: dict[str, type["StepSchedule"]] = {}


@dataclass(frozen=True)
class StepSchedule(ABC):
    """A number as an exact function of the step: the base of all schedules.

    A schedule has no counter of its own, so there is nothing to save and nothing that can
    be restored wrongly. It is a frozen dataclass: equal if its fields are, printable, and
    turned to JSON and back by `to_json` and `from_json`.

    Schedules multiply, with numbers and with each other, and follow each other with `then`.
    A subclass is a dataclass whose fields are numbers, texts or schedules, with a method
    `at`. A field annotated `int` must be a whole number, 0 or more; one annotated `float`
    must be finite.

    Example:
        >>> rate = 0.02 * Warmup(steps=10).then(CosineDecay(steps=90))
        >>> [round(rate(step), 4) for step in (0, 9, 10, 55, 100)]
        [0.002, 0.02, 0.02, 0.01, 0.0]
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _KNOWN[cls.__name__] = cls

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            kind = getattr(field.type, "__name__", field.type)
            if kind == "int" and (not _is_number(value) or value != int(value) or value < 0):
                self._refuse(field.name, "a whole number, 0 or more")
            if kind == "float" and not _is_number(value):
                self._refuse(field.name, "a finite number")
            if kind in ("int", "float"):
                object.__setattr__(self, field.name, (int if kind == "int" else float)(value))

    @property
    def length(self) -> int | None:
        """Steps after which the value no longer changes; None if there is no such step."""
        return None

    @abstractmethod
    def at(self, step: int) -> float:
        """Return the value at a step, 0 or more."""

    def __call__(self, step: int) -> float:
        """Return the value at a step; the first step is 0."""
        if not isinstance(step, int) or step < 0:
            raise ArgumentError(f"`step` is {step!r}; expected a whole number, 0 or more")
        return self.at(step)

    def then(self, following: "StepSchedule", after: int | None = None) -> "StepSchedule":
        """Return this schedule for some steps, and another from there on.

        Args:
            following: The schedule after this one; its own step 0 is the first one after this.
            after: How many steps this one has; by default its length.

        Raises:
            ArgumentError: This one has no length, and `after` is not given.

        Example:
            >>> both = Constant(1.0).then(LinearDecay(steps=4), after=2)
            >>> [both(step) for step in range(7)]
            [1.0, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0]
        """
        steps = self.length if after is None else after
        if steps is None:
            raise ArgumentError(
                f"{self} never ends, so nothing can follow it; say how many steps it has: "
                "`.then(..., after=1000)`"
            )
        return Then(self, following, steps)

    def __mul__(self, other: "StepSchedule | float") -> "StepSchedule":
        return Product(self, _as_schedule(other))

    def __rmul__(self, other: float) -> "StepSchedule":
        return Product(_as_schedule(other), self)

    def to_json(self) -> dict[str, Any]:
        """Return the schedule as plain data, which JSON and TOML can hold.

        Example:
            >>> Warmup(steps=10).to_json()
            {'schedule': 'Warmup', 'steps': 10, 'peak': 1.0}
        """
        data: dict[str, Any] = {"schedule": type(self).__name__}
        for field in fields(self):
            value = getattr(self, field.name)
            data[field.name] = value.to_json() if isinstance(value, StepSchedule) else value
        return data

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "StepSchedule":
        """Return the schedule that `to_json` was called on.

        Args:
            data: The result of `to_json`, also after a round trip through text.

        Raises:
            ArgumentError: The data is not that of a schedule; the message says what is wrong.

        Example:
            >>> StepSchedule.from_json({"schedule": "Warmup", "steps": 10})
            Warmup(steps=10, peak=1.0)
        """
        if not isinstance(data, Mapping) or "schedule" not in data:
            raise ArgumentError(
                f"{data!r} is not a schedule; expected a table with `schedule`, its name"
            )
        name = str(data["schedule"])
        if name not in _KNOWN:
            raise ArgumentError(
                f"there is no schedule {name!r}{near(name, _KNOWN)}; known are "
                f"{', '.join(sorted(_KNOWN))}"
            )
        allowed = [field.name for field in fields(_KNOWN[name])]
        values = {key: value for key, value in data.items() if key != "schedule"}
        for key in values:
            if key not in allowed:
                raise ArgumentError(f"{name} has no field `{key}`{near(key, allowed)}")
        try:
            return _KNOWN[name](
                **{
                    key: StepSchedule.from_json(value) if isinstance(value, Mapping) else value
                    for key, value in values.items()
                }
            )
        except TypeError as problem:  # a field is missing
            raise ArgumentError(f"{name} in {dict(data)!r}: {problem}") from None

    def plot(
        self, steps: int | None = None, path: str | Path | None = None, *, width: int = 72
    ) -> str:
        """Draw the schedule as text, and also as a picture if a path is given.

        Args:
            steps: How many steps to draw; by default its length.
            path: A `.png`, `.svg` or `.pdf` file to write.
            width: Columns of the text.

        Returns:
            The drawing as text.

        Raises:
            ArgumentError: The schedule never ends and `steps` is not given, or the file
                cannot be written.

        Example:
            >>> print(LinearDecay(steps=100).plot(width=24))  # doctest: +SKIP
        """
        count = self.length if steps is None else steps
        if count is None:
            raise ArgumentError(f"{self} never ends; say how much to draw: `.plot(steps=1000)`")
        if path is not None:
            write_picture(self, count, Path(path))
        return draw_text(self, count, width)

    def _refuse(self, name: str, expected: str) -> None:
        raise ArgumentError(
            f"`{name}` of {type(self).__name__} is {getattr(self, name)!r}; expected {expected}"
        )


def _is_number(value: object) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    )


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


def _as_schedule(value: StepSchedule | float) -> StepSchedule:
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
        """The longer of both lengths; a constant has none."""
        both = (self.first, self.second)
        lengths = [part.length for part in both if not isinstance(part, Constant)]
        known = [length for length in lengths if length is not None]
        return max(known) if known and len(known) == len(lengths) else None

    def at(self, step: int) -> float:
        """Return the product."""
        return self.first.at(step) * self.second.at(step)
