"""`Target`: the size or error of compressed layers."""

import re
from dataclasses import dataclass
from numbers import Real

from hotgrid.errors import ArgumentError

_UNITS = {"b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_NUMBER = r"((?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)"
_BITS = re.compile(rf"{_NUMBER}\s*bits?")
_ERROR = re.compile(rf"error\s*<=?\s*{_NUMBER}")
_SIZE = re.compile(rf"{_NUMBER}\s*({'|'.join(_UNITS)})")


def positive(name: str, value: object) -> float:
    """Return a number that is larger than zero.

    Raises:
        ArgumentError: It is something else; a bool is not a number.
    """
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else 0.0
    if not number > 0:
        raise ArgumentError(f"`{name}` is {value!r}; expected a positive number")
    return number


@dataclass(frozen=True, kw_only=True)
class Target:
    """A requirement for a compressed layer: exactly one of the three.

    `bits` and `bytes` ask for the most exact form that is not larger; `error` asks for the
    smallest form within it. As text: `4bit`, `2MB`, `error<=0.1`.

    Attributes:
        bits: For each weight of a layer. A form of codes that wide is granted what comes
            on top: a scale for each row, its tables, and rows padded to 32 or columns to
            64; next to nothing for large layers. Nothing larger than that is taken.
        bytes: For all compressed weights together, everything counted.
        error: The relative error of the outputs: 0.1 is a tenth of their length.

    Raises:
        ArgumentError: None or several are given, or one is not a positive number.

    Example:
        >>> Target.of("4bit"), Target.of("error <= 0.1").error
        (Target(bits=4.0, bytes=None, error=None), 0.1)
    """

    bits: float | None = None
    bytes: float | None = None
    error: float | None = None

    def __post_init__(self) -> None:
        """Check that there is one."""
        named = {"bits": self.bits, "bytes": self.bytes, "error": self.error}
        given = {name: value for name, value in named.items() if value is not None}
        try:
            numbers = [positive(name, value) for name, value in given.items()]
        except ArgumentError as problem:
            raise ArgumentError(f"a target is one positive number: {problem}") from None
        if len(numbers) != 1 or numbers[0] == float("inf"):
            raise ArgumentError(
                f"a target is one positive number, `bits`, `bytes` or `error`; got {self}"
            )

    @classmethod
    def of(cls, target: "Target | str") -> "Target":
        """Return the target that a text names.

        Raises:
            ArgumentError: The text is none of `4bit`, `2MB`, `error<=0.1`.
        """
        if isinstance(target, Target):
            return target
        text = target.strip().lower() if isinstance(target, str) else ""
        if match := _BITS.fullmatch(text):
            return cls(bits=float(match[1]))
        if match := _ERROR.fullmatch(text):
            return cls(error=float(match[1]))
        if match := _SIZE.fullmatch(text):
            return cls(bytes=float(match[1]) * _UNITS[match[2]])
        raise ArgumentError(
            f"`target` {target!r} is not understood; write bits as '4bit', a size as '2MB' or "
            "'512KiB', an error as 'error<=0.1'"
        )
