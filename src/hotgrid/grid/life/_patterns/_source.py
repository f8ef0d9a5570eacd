"""Where the text of a pattern comes from and goes to, and how to point into it."""

from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from hotgrid.errors import ArgumentError
from hotgrid.files import whole_file


@dataclass(frozen=True)
class Source:
    """A text, and what to call it in errors."""

    text: str
    origin: str

    @classmethod
    def of(cls, given: str | Path, suffix: str) -> "Source":
        """A path, or a str with the suffix of one, is read; other text is used directly."""
        if not isinstance(given, str | Path):
            raise ArgumentError(
                f"`source` must be a text, or a file that ends in `{suffix}`, got {given!r}"
            )
        if isinstance(given, str) and not given.endswith(suffix):
            return cls(given, "the text")
        path = Path(given)
        try:
            return cls(path.read_text(encoding="utf-8"), f"`{path}`")
        except OSError as problem:
            raise ArgumentError(f"cannot read `{path}`: {problem.strerror}") from None
        except UnicodeDecodeError:
            raise ArgumentError(f"`{path}` is not text") from None

    def refuse(self, at: int, reason: str) -> NoReturn:
        """Raise, with line and column, and a caret under the place."""
        before = self.text[:at]
        line, column = before.count("\n") + 1, at - before.rfind("\n")
        whole = self.text.splitlines()[line - 1] if line <= len(self.text.splitlines()) else ""
        # Of a long line, what is around the place.
        start = max(0, column - 41)
        raise ArgumentError(
            f"{self.origin}, line {line}, column {column}: {reason}\n"
            f"  {whole[start : start + 70]}\n  {' ' * (column - 1 - start)}^"
        )


def saved(text: str, path: str | Path | None) -> str:
    """The text, written to a file if there is a path."""
    if path is not None:
        with whole_file(Path(path)) as aside:
            aside.write_text(text, encoding="utf-8")
    return text
