"""One thing that is wrong with the settings, and the error that carries all of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from hotgrid.errors import ConfigError


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with the settings.

    Attributes:
        message: What is wrong, what was expected, and the nearest valid word.
        source: The file, the variable (`HOTGRID_...`), the flag (`-c ...`) or
            `override`.
        line: The line in the file, counted from 1.
        column: The column, where the file is not valid TOML.

    Example:
        >>> str(Problem("`level` is an unknown key", "hotgrid.toml", 3))
        'hotgrid.toml:3: `level` is an unknown key'
    """

    message: str
    source: str
    line: int | None = None
    column: int | None = None

    @property
    def where(self) -> str:
        """The source with line and column, if known."""
        parts = (self.source, self.line, self.column)
        return ":".join(str(part) for part in parts if part is not None)

    def __str__(self) -> str:
        return one_line(f"{self.where}: {self.message}")


def one_line(text: str) -> str:
    """Return the text with line breaks and other unprintable characters as escapes."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def error_of(problems: Sequence[Problem]) -> ConfigError:
    """Return one error that lists all problems."""
    if len(problems) == 1:
        return ConfigError(str(problems[0]))
    listing = "".join(f"\n  {problem}" for problem in problems)
    return ConfigError(f"{len(problems)} problems in the settings:{listing}")
