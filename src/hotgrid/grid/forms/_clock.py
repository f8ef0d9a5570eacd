"""`Clock`: the time at each step of a run, whose steps may change their length."""

import math
from bisect import bisect_right
from collections.abc import Mapping
from inspect import getattr_static
from numbers import Real

from hotgrid.grid.model import Model

from ._schedule import ParameterSchedule

Lengths = dict[tuple[float, ...], float]


class Clock:
    """The time at each step: the sum of the lengths that the steps before it had.

    Args:
        start: The model as it is at step 0.
        plan: The changes of its parameters, on which the length of a step may depend.
        known: Lengths of steps by the values of all parameters.
    """

    def __init__(
        self, start: Model, plan: ParameterSchedule, known: Lengths | None = None
    ) -> None:
        self.start, self.plan = start, plan
        self.known: Lengths = {} if known is None else known
        spans = [] if _is_constant(start) else plan.spans(start.parameters)
        self._values = [values for _, values in spans] or [start.parameters]
        self._since = [step for step, _ in spans] or [0]
        self._times = [0.0]

    def at(self, step: int) -> float:
        """The time after so many steps."""
        span = bisect_right(self._since, step) - 1
        return self._begin(span) + (step - self._since[span]) * self._length(span)

    def steps_in(self, duration: float, since: int = 0) -> int:
        """How many steps from one on take at least so long, but for round-off."""
        left, made = duration, 0
        for span in range(bisect_right(self._since, since) - 1, len(self._since)):
            length = self._length(span)
            # Slightly less, so that 0.3 / 0.1 is three steps and not four.
            needed = math.ceil(left / length - 1e-9)
            if span + 1 == len(self._since) or since + made + needed <= self._since[span + 1]:
                return made + needed
            count = self._since[span + 1] - since - made
            left, made = left - count * length, made + count
        raise AssertionError("the last span has no end")

    def _begin(self, span: int) -> float:
        """The time at which a span of steps of the same length begins."""
        while len(self._times) <= span:
            last = len(self._times) - 1
            count = self._since[last + 1] - self._since[last]
            self._times.append(self._times[last] + count * self._length(last))
        return self._times[span]

    def _length(self, span: int) -> float:
        values = self._values[span]
        key = tuple(values.values())
        if key not in self.known:
            self.known[key] = float(self._with(values).time_step)
        return self.known[key]

    def _with(self, values: Mapping[str, float]) -> Model:
        same = values == self.start.parameters
        return self.start if same else self.start.changed(**values)


def _is_constant(model: Model) -> bool:
    """Whether no parameter can change how long a step takes: the class says a number."""
    own = "time_step" in vars(model)
    return not own and isinstance(getattr_static(type(model), "time_step"), Real)
