"""Numbers of a group: fixed, named, or functions of the step."""

import math
from collections.abc import Callable, Mapping

from hotgrid.errors import ArgumentError, near
from hotgrid.train._optimizers import Value
from hotgrid.train._schedules import Constant


class GroupValue:
    """One number of a group, and its value at a step.

    Args:
        place: Its place, for error messages, such as "`rate` of `//Linear`".
        value: A number, a function of the step, or a name.
        named: The values that names stand for.
        zero: Whether it can be 0.
    """

    def __init__(
        self, place: str, value: Value, named: Mapping[str, Value], *, zero: bool = True
    ) -> None:
        self.place, self._zero = place, zero
        if isinstance(value, str):
            if value not in named:
                raise ArgumentError(
                    f"{place} is the name {value!r}, which is not in `rates`"
                    f"{near(value, named)}; `rates` has {', '.join(named) or 'no names'}"
                )
            value = named[value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            self._expect(value, value, "")
            value = Constant(value)
        if not callable(value):
            raise ArgumentError(
                f"{place} is {value!r}; expected a number, a function of the step such as a "
                "schedule, or a name in `rates`"
            )
        self._function: Callable[[int], float] = value

    @property
    def is_fixed(self) -> bool:
        """Whether it is the same at every step."""
        return isinstance(self._function, Constant)

    def at(self, step: int) -> float:
        """Return the number; one that is negative or not finite is an error."""
        number = self._function(step)
        try:
            value = float(number)
        except (TypeError, ValueError):
            value = math.nan
        self._expect(value, number, f" at step {step}")
        return value

    def _expect(self, value: float, number: object, when: str) -> None:
        if not 0 <= value < math.inf or (value == 0 and not self._zero):
            least = ", 0 or more" if self._zero else " above 0"
            raise ArgumentError(f"{self.place} is {number!r}{when}; expected a number{least}")
