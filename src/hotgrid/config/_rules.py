"""Rules for the values of settings. A rule also reads its value from plain text."""

import datetime
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from hotgrid.errors import ConfigError, near

_INTEGER = re.compile(r"[+-]?[0-9]+")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST_SHOWN = 80
_LARGEST_SHOWN = 10**18
_MOST_ITEMS_SHOWN = 5


class RefusalError(ValueError):
    """A value breaks its rule; the message is the rest of a sentence about the key."""


@dataclass(frozen=True)
class File:
    """The value `{file = "path"}`: a place that the user named.

    Attributes:
        path: Absolute once it is part of a `Config`; in a `hotgrid.toml` a relative
            path is relative to that file, elsewhere to the working folder.

    Example:
        >>> File(Path("/var/log/hotgrid.log")).plain()
        {'file': '/var/log/hotgrid.log'}
    """

    path: Path

    def plain(self) -> dict[str, str]:
        """Return the value as TOML and JSON write it."""
        return {"file": str(self.path)}


class Rule(ABC):
    """A rule for one value: `accept` checks it, `read` makes it from plain text."""

    expected: str

    @abstractmethod
    def accept(self, value: object, folder: Path | None = None) -> object:
        """Return the value in its lasting form, or raise `RefusalError`.

        `folder` is where relative paths start; by default the working folder.
        """

    def read(self, text: str) -> object:
        """Return the value that TOML would give for this text; never raises."""
        return text.strip()

    def _refused(self, value: object, words: Iterable[str] = ()) -> RefusalError:
        hint = near(value, words) if isinstance(value, str) else ""
        return RefusalError(f"is {shown(value)}; expected {self.expected}{hint}")


class OneOf(Rule):
    """One word of a `Literal`."""

    def __init__(self, words: object) -> None:
        self.words: tuple[str, ...] = get_args(words)
        self.expected = f"one of {', '.join(self.words)}"

    def accept(self, value: object, folder: Path | None = None) -> object:
        """Return the word unchanged."""
        if isinstance(value, str) and value in self.words:
            return value
        raise self._refused(value, self.words)


class Whole(Rule):
    """An integer in a closed range, or the word `auto` where that is allowed."""

    def __init__(self, low: int, high: int, *, auto: bool = False) -> None:
        self.low, self.high = low, high
        self.words = ("auto",) if auto else ()
        self.expected = f"an integer from {low} to {high}" + (" or auto" if auto else "")

    def accept(self, value: object, folder: Path | None = None) -> object:
        """Return the integer; `true` and `3.0` are not integers."""
        if isinstance(value, str) and value in self.words:
            return value
        # In Python True is an int; in a settings file it is a mistake.
        if type(value) is int and self.low <= value <= self.high:
            return value
        raise self._refused(value, self.words)

    def read(self, text: str) -> object:
        """Return the integer in the text, or the text when there is none.

        Digits and a sign: `int` alone would also take `1_0` and digits of other scripts.
        """
        try:
            return int(text) if _INTEGER.fullmatch(text.strip()) else text.strip()
        except ValueError:
            return text.strip()


class Number(Rule):
    """A number in a closed range; an integer will do."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high
        self.expected = f"a number from {low:g} to {high:g}"

    def accept(self, value: object, folder: Path | None = None) -> object:
        """Return the number as a float; NaN is in no range."""
        if type(value) in (int, float) and self.low <= cast(float, value) <= self.high:
            return float(cast(float, value))
        raise self._refused(value)

    def read(self, text: str) -> object:
        """Return the number in the text, or the text when there is none."""
        try:
            plain = text.isascii() and "_" not in text
            return float(text) if plain else text.strip()
        except ValueError:
            return text.strip()


class WordOrFile(Rule):
    """One word of a `Literal`, or `{file = "path"}`; in plain text `file:path`."""

    def __init__(self, words: object) -> None:
        self.words: tuple[str, ...] = get_args(words)
        self.expected = f'one of {", ".join(self.words)} or {{file = "path"}}'

    def accept(self, value: object, folder: Path | None = None) -> object:
        """Return the word, or a `File` with an absolute path."""
        if isinstance(value, str) and value in self.words:
            return value
        if isinstance(value, File):
            value = {"file": value.path}
        if isinstance(value, Mapping) and set(value) == {"file"}:
            path = value["file"]
            if isinstance(path, str | Path) and str(path).strip() and "\0" not in str(path):
                return File(_absolute(Path(path), folder))
        raise self._refused(value, self.words)

    def read(self, text: str) -> object:
        """Return the word, or a table when the text begins with `file:`."""
        text = text.strip()
        return {"file": text[5:].strip()} if text.startswith("file:") else text


def _absolute(path: Path, folder: Path | None) -> Path:
    try:
        path = path.expanduser()
    except RuntimeError:
        raise RefusalError(f"is {shown(str(path))}; no home folder is known for it") from None
    # Two spellings of one path must be equal: a log file is written once per record.
    return Path(os.path.normpath((folder or working_folder()) / path))


class ListOf(Rule):
    """A list in which every item obeys another rule; in plain text separated by commas."""

    def __init__(self, item: Rule) -> None:
        self.item = item
        self.expected = f"a list in which each is {item.expected}"

    def accept(self, value: object, folder: Path | None = None) -> object:
        """Return the accepted items as a tuple."""
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise self._refused(value)
        accepted: list[object] = []
        refused: list[tuple[int, RefusalError]] = []
        for number, item in enumerate(value, 1):
            try:
                accepted.append(self.item.accept(item, folder))
            except RefusalError as refusal:
                refused.append((number, refusal))
        if len(refused) == 1:
            raise RefusalError(f"has an item that {refused[0][1]}")
        if refused:
            few = [f"item {number} {why}" for number, why in refused[:_MOST_ITEMS_SHOWN]]
            raise RefusalError(f"has {len(refused)} bad items: {' and '.join(few)}")
        return tuple(accepted)

    def read(self, text: str) -> object:
        """Return the items between the commas."""
        return [self.item.read(part) for part in text.split(",")]


def working_folder() -> Path:
    """Return the working folder, or raise if it was removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise ConfigError(
            "the working folder no longer exists; change to a folder that does"
        ) from None


def shown(value: object) -> str:
    """Return a value as the user may have written it in TOML, cut to a readable length."""
    try:
        text = _as_toml(value)
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__} too large to show"
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def _as_toml(value: object) -> str:
    match value:
        case int() if not isinstance(value, bool) and abs(value) >= _LARGEST_SHOWN:
            # Python refuses to write integers of more than 4300 digits.
            return f"an integer of {value.bit_length()} bits"
        case bool() | str() | Path():
            plain = str(value) if isinstance(value, Path) else value
            return json.dumps(plain, ensure_ascii=False)
        case datetime.date() | datetime.time():
            return value.isoformat()
        case list() | tuple():
            return f"[{', '.join(map(_as_toml, value))}]"
        case dict():
            pairs = (f"{_key_as_toml(key)} = {_as_toml(each)}" for key, each in value.items())
            return f"{{{', '.join(pairs)}}}"
        case _:
            return repr(value)


def _key_as_toml(key: object) -> str:
    bare = isinstance(key, str) and _BARE_KEY.fullmatch(key)
    return str(key) if bare else _as_toml(key)
