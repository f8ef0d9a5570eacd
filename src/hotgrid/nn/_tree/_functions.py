"""The functions of expressions, as data, and the conversions of XPath 1.0."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hotgrid.errors import ArgumentError

_NUMBER = re.compile(r"[ \t\r\n]*-?(?:\d+(?:\.\d*)?|\.\d+)[ \t\r\n]*\Z", re.ASCII)


def to_number(value: Any) -> float:
    """The number of a string (NaN if it is not one), a boolean or a number."""
    if isinstance(value, str):
        return float(value) if _NUMBER.match(value) else math.nan
    return float(value)


def to_text(value: Any) -> str:
    """The text of a number, a boolean or a string."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        return str(int(value)) if value == int(value) else repr(value)
    return value


def to_truth(value: Any) -> bool:
    """Whether a value counts as true: not empty, not zero, not NaN."""
    return bool(value) and not (isinstance(value, float) and math.isnan(value))


@dataclass(frozen=True, slots=True)
class Function:
    """A function: the kinds of its arguments and of its result, and what it does.

    Kinds are `string`, `number`, `boolean`, and `set` for nodes or attributes. Where
    `compute` is None the evaluator has it, as it needs more than the arguments.
    """

    arguments: tuple[str, ...]
    gives: str
    compute: Callable[..., Any] | None
    optional: int = 0
    any_number: bool = False

    @property
    def fewest(self) -> int:
        """The fewest arguments of a call."""
        return len(self.arguments) - self.optional

    @property
    def most(self) -> float:
        """The most arguments of a call."""
        return math.inf if self.any_number else len(self.arguments)

    def takes(self) -> str:
        """How many arguments, in words."""
        if self.any_number:
            return f"at least {self.fewest} arguments"
        if self.optional:
            return f"{self.fewest} to {len(self.arguments)} arguments"
        return f"{self.fewest} argument{'s' * (self.fewest != 1)}"


def _matches(text: str, pattern: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error as error:
        raise ArgumentError(
            f"`matches` got `{pattern}`, which is not a regular expression: {error}"
        ) from None


_TEXTS = ("string", "string")

FUNCTIONS: dict[str, Function] = {
    "position": Function((), "number", None),
    "last": Function((), "number", None),
    "count": Function(("set",), "number", lambda found: float(len(found))),
    "name": Function(("set",), "string", None, optional=1),
    "local-name": Function(("set",), "string", None, optional=1),
    "not": Function(("boolean",), "boolean", lambda truth: not truth),
    "true": Function((), "boolean", lambda: True),
    "false": Function((), "boolean", lambda: False),
    "boolean": Function(("boolean",), "boolean", bool),
    "number": Function(("number",), "number", float),
    "string": Function(("string",), "string", str),
    "string-length": Function(("string",), "number", lambda text: float(len(text))),
    "concat": Function(_TEXTS, "string", lambda *texts: "".join(texts), any_number=True),
    "contains": Function(_TEXTS, "boolean", lambda text, part: part in text),
    "starts-with": Function(_TEXTS, "boolean", str.startswith),
    "ends-with": Function(_TEXTS, "boolean", str.endswith),
    "matches": Function(_TEXTS, "boolean", _matches),
}
