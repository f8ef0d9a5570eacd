"""Messages from a page: JSON objects, parsed with limits, checked field by field."""

import json
import math
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hotgrid.errors import HotgridError

# The largest float: a whole number in JSON may be larger.
_MOST = sys.float_info.max
Check = Callable[[Any], Any]
"""Returns a field of a message as it is used, or raises `ValueError`."""


class MessageError(HotgridError):
    """A message from a page is not one that the server takes; the text says why."""

    exit_code = 2


@dataclass(frozen=True)
class Limits:
    """The limits on the messages of a page.

    Attributes:
        size: Bytes of one message.
        rate: Messages a second, on average.
        burst: Messages that may come at once.
    """

    size: int = 65536
    rate: float = 200.0
    burst: int = 400


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True)
class PageMessage:
    """One message of a page.

    Attributes:
        type: The kind of request.
        id: The number that the answer repeats; None where none is wanted.
        fields: Its other fields, each as its check returned it.
    """

    type: str
    id: int | None
    fields: Mapping[str, Any]


@dataclass
class Meter:
    """How many messages a viewer has sent lately, as a token bucket."""

    limits: Limits
    now: Callable[[], float] = time.monotonic
    _left: float = field(init=False)
    _at: float = field(init=False)

    def __post_init__(self) -> None:
        self._left, self._at = float(self.limits.burst), self.now()

    def take(self) -> bool:
        """Whether one more message is within the limits."""
        at = self.now()
        refilled = self._left + (at - self._at) * self.limits.rate
        self._left, self._at = min(float(self.limits.burst), refilled), at
        if self._left < 1:
            return False
        self._left -= 1
        return True


def parse_message(
    text: object, kinds: Mapping[str, Mapping[str, Check]], limits: Limits = DEFAULT_LIMITS
) -> PageMessage:
    """A message that a page sent.

    Arguments:
        text: The text of the message.
        kinds: For each type of message its fields, and for each field a check that returns
            the value or raises `ValueError` with what was expected. A field is optional where
            its check takes None.
        limits: Its largest size.

    Raises:
        MessageError: It is too large, no JSON object, of an unknown type, or a field is wrong.
    """
    if not isinstance(text, str):
        raise MessageError("a message must be text, not bytes")
    if len(text.encode("utf-8", "surrogatepass")) > limits.size:
        raise MessageError(f"a message must have at most {limits.size} bytes")
    try:
        found = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise MessageError(f"a message is a JSON object, got {text[:80]!r}") from None
    if not isinstance(found, dict):
        raise MessageError(f"a message is a JSON object, got {text[:80]!r}")
    kind, number = found.pop("type", None), found.pop("id", None)
    if not isinstance(kind, str) or kind not in kinds:
        raise MessageError(f"there is no message of type {str(kind)[:80]!r}")
    if number is not None and (type(number) is not int or abs(number) > 2**53):
        raise MessageError("`id` must be a whole number")
    fields: dict[str, Any] = {}
    for name, check in kinds[kind].items():
        try:
            fields[name] = check(found.pop(name, None))
        except ValueError as problem:
            raise MessageError(f"`{name}` of `{kind}` must be {problem}") from None
    if found:
        raise MessageError(f"`{kind}` has no field `{str(next(iter(found)))[:80]}`")
    return PageMessage(kind, number, fields)


def number_in(low: float = -math.inf, high: float = math.inf) -> Check:
    """A check of a finite number within bounds."""

    def check(value: Any) -> float:
        if type(value) in (int, float) and max(low, -_MOST) <= value <= min(high, _MOST):
            return float(value)
        raise ValueError(f"a number from {low:g} to {high:g}")

    return check


def whole_in(low: int, high: int) -> Check:
    """A check of a whole number within bounds."""

    def check(value: Any) -> int:
        if type(value) is int and low <= value <= high:
            return value
        raise ValueError(f"a whole number from {low} to {high}")

    return check


def text_of(longest: int) -> Check:
    """A check of a text that is not empty."""

    def check(value: Any) -> str:
        if isinstance(value, str) and 0 < len(value) <= longest:
            return value
        raise ValueError(f"a text of 1 to {longest} characters")

    return check


def truth(value: Any) -> bool:
    """A check of true or false."""
    if isinstance(value, bool):
        return value
    raise ValueError("true or false")


def one_of(*words: str) -> Check:
    """A check of one of some words."""

    def check(value: Any) -> str:
        if isinstance(value, str) and value in words:
            return value
        raise ValueError(f"one of {', '.join(words)}")

    return check


def list_of(each: Check, least: int, most: int) -> Check:
    """A check of a list."""

    def check(value: Any) -> list[Any]:
        if isinstance(value, list) and least <= len(value) <= most:
            return [each(x) for x in value]
        raise ValueError(f"a list of {least} to {most} parts")

    return check


def optional(each: Check, default: Any = None) -> Check:
    """A check of a field that may be missing or null."""
    return lambda value: default if value is None else each(value)


def _no_constant(name: str) -> Any:
    raise ValueError(name)
