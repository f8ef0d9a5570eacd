"""Parameters over time: which value a parameter has at which step."""

import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from numbers import Real
from types import MethodType
from typing import Any

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError

# A ramp is a staircase: every stair is a value that a run can be checked at.
_STAIRS = 64
_CHANGE = re.compile(r"\s*(?P<value>\S+)\s*@\s*(?P<since>\d+)(?:\s*\.\.\s*(?P<until>\d+))?\s*")
_GRAMMAR = '"400 @ 2000" (from step 2000 on), or "400 @ 2000..3000" (a ramp between them)'


@dataclass(frozen=True)
class Change:
    """One change of a parameter.

    Attributes:
        value: The new value.
        since: The step from which it holds, or at which the ramp to it begins.
        until: The step at which the ramp ends; None for a jump.
    """

    value: float
    since: int
    until: int | None = None

    def __str__(self) -> str:
        ramp = "" if self.until is None else f"..{self.until}"
        return f"{self.value!r} @ {self.since}{ramp}"

    def stairs(self) -> list[int]:
        """The steps at which the value changes."""
        if self.until is None:
            return [self.since]
        length = self.until - self.since
        count = min(_STAIRS, length)
        return [self.since + length * i // count for i in range(1, count + 1)]

    def at(self, step: int, before: float) -> float:
        """The value at a step, coming from the value before the change."""
        stairs = self.stairs()
        share = bisect_right(stairs, step) / len(stairs)
        return self.value if share == 1 else before + share * (self.value - before)


@dataclass(frozen=True)
class ParameterSchedule:
    """The changes of every parameter, a pure function from steps to values.

    Attributes:
        changes: For each parameter its changes, the earliest first.

    Example:
        >>> plan = ParameterSchedule().with_changes("rate", "0.1 @ 100 -> 0.2 @ 200..300")
        >>> plan.values({"rate": 0.0}, 250)
        {'rate': 0.15000000000000002}
    """

    changes: Mapping[str, tuple[Change, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.changes)

    def with_changes(self, name: str, given: object) -> "ParameterSchedule":
        """A schedule with more changes of one parameter.

        Raises:
            ArgumentError: The text or list is not one of changes; the message has an example.
        """
        found = _changes(name, given)
        known = (*self.changes.get(name, ()), *found)
        for earlier, later in pairwise(known):
            end = earlier.since if earlier.until is None else earlier.until
            if later.since < end:
                raise ArgumentError(
                    f"`{name}` changes at step {later.since}, before the change "
                    f'"{earlier}" is over; write changes in the order of their steps'
                )
        return ParameterSchedule({**self.changes, name: known})

    def with_value(
        self, name: str, value: float, step: int, start: float
    ) -> "ParameterSchedule":
        """A schedule in which a parameter has a value from a step on, whatever was planned.

        Args:
            name: The parameter.
            value: Its new value.
            step: The step from which it holds. Of a ramp, the stairs before it remain.
            start: The value at step 0.
        """
        before: list[Change] = []
        for change in self.changes.get(name, ()):
            if max(change.stairs()) < step:
                before.append(change)
            else:
                stairs = [each for each in change.stairs() if each < step]
                before += [Change(change.at(each, start), each) for each in stairs]
            start = change.value
        return ParameterSchedule({**self.changes, name: (*before, Change(value, step))})

    def values(self, start: Mapping[str, float], step: int) -> dict[str, float]:
        """The value of every parameter at a step, from those at the start."""
        found = dict(start)
        for name, changes in self.changes.items():
            for change in changes:
                found[name] = change.at(step, found[name])
        return found

    def spans(self, start: Mapping[str, float]) -> list[tuple[int, dict[str, float]]]:
        """The values of all parameters from step 0 on, and from each step that changes one."""
        jumps: list[tuple[int, str, float]] = []
        for name, changes in self.changes.items():
            value = start[name]
            for change in changes:
                jumps += [(step, name, change.at(step, value)) for step in change.stairs()]
                value = change.value
        found = {0: dict(start)}
        now = dict(start)
        for step, name, value in sorted(jumps, key=lambda jump: jump[0]):
            now[name] = value
            found[step] = dict(now)
        return list(found.items())

    def next_change(self, step: int) -> int | None:
        """The first step after this one at which a value changes; None if none will."""
        stairs = [s for each in self.changes.values() for c in each for s in c.stairs()]
        return min((s for s in stairs if s > step), default=None)

    def texts(self) -> dict[str, str]:
        """Every parameter's changes as the text that `with_changes` reads."""
        return {name: " -> ".join(map(str, each)) for name, each in self.changes.items()}


# What two models may differ in though their steps are the same.
_OWN = ("_values", "_made_with", "_known")


def alike(one: Any, other: Any, depth: int = 8) -> bool:
    """Whether two objects hold the same, so that one step serves both.

    Values of parameters and caches do not count. What cannot be compared counts as different.
    """
    if one is other or type(one) is not type(other) or not depth:
        return one is other
    if isinstance(one, Tensor):
        return one.shape == other.shape and one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, str | bytes | int | float):
        return one == other
    if isinstance(one, MethodType):
        # Of the model itself, whose attributes are compared anyway.
        return one.__func__ is other.__func__
    mine, others = _parts(one), _parts(other)
    if mine is None or others is None or mine.keys() != others.keys():
        return False
    return all(alike(x, others[name], depth - 1) for name, x in mine.items())


def _parts(x: Any) -> Mapping[Any, Any] | None:
    """What an object is made of, by name or index; None if unknown."""
    if isinstance(x, Mapping):
        return x
    if isinstance(x, list | tuple):
        return dict(enumerate(x))
    held = getattr(x, "__dict__", None)
    return held and {name: value for name, value in held.items() if name not in _OWN}


def split_start(text: str) -> tuple[str, str]:
    """Split `100 -> 400 @ 2000` into the value at the start and the changes.

    Example:
        >>> split_start("100 -> 400 @ 2000")
        ('100', '400 @ 2000')
    """
    start, _, changes = text.partition("->")
    return start.strip(), changes.strip()


def _changes(name: str, given: object) -> tuple[Change, ...]:
    if isinstance(given, str):
        return tuple(_parsed(name, part, given) for part in given.split("->"))
    if not isinstance(given, Sequence):
        raise ArgumentError(
            f"the changes of `{name}` are a text such as {_GRAMMAR}, or a list of pairs "
            f"[(step, value), ...], got {given!r}"
        )
    found: list[Change] = []
    for pair in given:
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise ArgumentError(f"a change of `{name}` is a pair (step, value), got {pair!r}")
        step, value = pair
        if isinstance(step, bool) or not isinstance(step, int) or step < 0:
            raise ArgumentError(f"`{name}` changes at a step of at least 0, got {step!r}")
        found.append(Change(_number(name, value), step))
    return tuple(found)


def _parsed(name: str, part: str, given: str) -> Change:
    match = _CHANGE.fullmatch(part)
    if match is None:
        raise ArgumentError(
            f"`{part.strip()}` in `{name}={given}` is not a change; write {_GRAMMAR}"
        )
    since, until = int(match["since"]), match["until"]
    if until is not None and int(until) <= since:
        raise ArgumentError(f"the ramp `{part.strip()}` of `{name}` must end after it begins")
    return Change(_number(name, match["value"]), since, None if until is None else int(until))


def _number(name: str, value: object) -> float:
    try:
        number = float(value) if isinstance(value, str | Real) else math.nan
    except ValueError:
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number):
        raise ArgumentError(f"`{name}` changes to a number, got {value!r}")
    return number
