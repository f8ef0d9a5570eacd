"""One line of the table: a number that is known, and the one found here."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A reference value, the computed one, and the largest difference that passes.

    Attributes:
        name: What was checked; unique in the table.
        reference: The reference value.
        value: The number computed here.
        error: How far apart they are, `abs(value - reference)`.
        limit: The largest error that passes.
        passed: Whether the error is within the limit; never for one that is not a number.
        source: Where the reference comes from.
        setting: What was run to get the value, in a few words.
        seconds: How long it took.

    Example:
        >>> row = compared("drag", 5.58, 5.56, limit=0.05, source="Schaefer and Turek 1996")
        >>> row.passed, round(row.error, 3)
        (True, 0.02)
    """

    name: str
    reference: float
    value: float
    error: float
    limit: float
    passed: bool
    source: str
    setting: str = ""
    seconds: float = 0.0

    def record(self) -> dict[str, str | float | bool | None]:
        """The row as JSON: `passed` is called `pass`, NaN and infinities are null."""
        found = {"pass" if k == "passed" else k: v for k, v in vars(self).items()}
        return {k: None if v != v else v for k, v in found.items()}  # noqa: PLR0124  NaN alone


def compared(
    name: str, reference: float, value: float, *, limit: float, source: str, setting: str = ""
) -> Row:
    """A row that compares a value with its reference.

    Example:
        >>> compared("period", 30, 31, limit=0, source="Gosper 1970").passed
        False
    """
    error = abs(value - reference)
    return Row(
        name=name,
        reference=float(reference),
        value=float(value),
        error=float(error),
        limit=float(limit),
        passed=bool(error <= limit),
        source=source,
        setting=setting,
    )
