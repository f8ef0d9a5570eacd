"""`StepSchedule`: a number as a function of the step, as data."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from hotgrid.errors import ArgumentError, near

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

    length: ClassVar[Any] = None
    """Steps after which the value no longer changes; None if it always does."""

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
            following: What comes after; its own step 0 is the first one after this.
            after: How many steps this one has; by default its length.

        Raises:
            ArgumentError: This one has no length, and `after` is not given.

        Example:
            >>> both = Constant(1.0).then(LinearDecay(steps=4), after=2)
            >>> [both(step) for step in range(7)]
            [1.0, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0]
        """
        from ._combined import Then

        steps = self.length if after is None else after
        if steps is None:
            raise ArgumentError(
                f"{self} never ends, so nothing can follow it; say how many steps it has: "
                "`.then(..., after=1000)`"
            )
        return Then(self, following, steps)

    def __mul__(self, other: "StepSchedule | float") -> "StepSchedule":
        from ._combined import Product, as_schedule

        return Product(self, as_schedule(other))

    def __rmul__(self, other: float) -> "StepSchedule":
        from ._combined import Product, as_schedule

        return Product(as_schedule(other), self)

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
            data: What `to_json` returned, also after a round trip through text.

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
        name = data["schedule"]
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
        from ._plot import draw_text, write_picture

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
