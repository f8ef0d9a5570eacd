"""Reading TOML with the line of every key, which `tomllib` does not give."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KeyPath = tuple[str, ...]

# In a valid document these tokens are enough to see where a statement ends: a line
# break counts unless it is inside a string or between brackets.
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?""""{0,2}'
    r"|'''.*?''''{0,2}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*|[\[{]|[\]}]|\n",
    re.DOTALL,
)
# No setting is nested deeper; a key with thousands of dots must not cost their square.
_DEEPEST = 8
_WORD = re.compile(r"[A-Za-z_][\w-]*")
_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


class UnreadableError(Exception):
    """A document cannot be read; `line` and `column` say where, if known."""

    def __init__(self, reason: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(reason)
        self.line, self.column = line, column


@dataclass(frozen=True)
class Document:
    """A parsed document and the line of the first occurrence of each key path."""

    table: dict[str, Any]
    lines: dict[KeyPath, int]


def read(path: Path) -> Document:
    """Read a TOML file, or raise `UnreadableError`."""
    try:
        raw = path.read_bytes()
    except IsADirectoryError:
        raise UnreadableError("is a folder, not a file; move it away or name a file") from None
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise UnreadableError(f"cannot be read ({reason})") from None
    try:
        # Some editors put a byte order mark first; it means nothing in UTF-8.
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before, bad = error.object[: error.start], error.object[error.start]
        line, column = _line_and_column(before)
        reason = f"byte 0x{bad:02x} is not UTF-8; save the file as UTF-8"
        raise UnreadableError(reason, line, column) from None
    return parse(text)


def parse(text: str) -> Document:
    """Parse a TOML document and find the line of every key, or raise `UnreadableError`."""
    text = text.replace("\r\n", "\n")
    try:
        return Document(tomllib.loads(text), _lines_of(text))
    except tomllib.TOMLDecodeError as error:
        raise _located(error, text) from None
    except RecursionError:
        raise UnreadableError("is nested too deeply") from None
    except ValueError as error:
        # A number with too many digits: valid TOML, but Python declines to convert it.
        reason = f"has a number that is too long: {str(error).split(';')[0]}"
        raise UnreadableError(reason, _failing_line(text)) from None


def _located(error: tomllib.TOMLDecodeError, text: str) -> UnreadableError:
    message = str(error)
    found = _POSITION.search(message)
    reason = f"is not valid TOML: {_POSITION.sub('', message)}"
    if found and found[1]:
        line, column = int(found[1]), int(found[2])
        hint = _word_without_quotes(text.split("\n")[line - 1], column - 1, message)
        return UnreadableError(reason + hint, line, column)
    return UnreadableError(
        f"{reason}, at the end", *_line_and_column(text.rstrip("\n").encode())
    )


def _word_without_quotes(line: str, at: int, message: str) -> str:
    for word in _WORD.finditer(line):
        # `info` begins like the number `inf`: tomllib fails in the middle of the word.
        begins_here = word.start() == at and message.startswith("Invalid value")
        if begins_here or word.start() < at < word.end():
            plain = word[0].lower()
            quoted = plain if plain in ("true", "false") else f'"{word[0]}"'
            return f"; `{word[0]}` must be written {quoted}"
    return ""


def _line_and_column(before: bytes) -> tuple[int, int]:
    last = before.rsplit(b"\n", 1)[-1]
    return before.count(b"\n") + 1, len(last.decode("utf-8", "replace")) + 1


def _failing_line(text: str) -> int | None:
    for line, statement in statements(text):
        try:
            tomllib.loads(statement)
        except ValueError:
            return line
    return None


def statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield the first line and the text of every statement of a valid document.

    A statement is a table header or one `key = value`, with all the lines its
    value takes; blank lines and comments come alone.
    """
    start, line, depth = 0, 1, 0
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
        elif token[0] == "\n" and depth == 0:
            yield line, text[start : token.end()]
            line += text.count("\n", start, token.end())
            start = token.end()
    if start < len(text):
        yield line, text[start:]


def _lines_of(text: str) -> dict[KeyPath, int]:
    lines: dict[KeyPath, int] = {}
    header: KeyPath = ()
    for line, statement in statements(text):
        table = tomllib.loads(statement)
        if not table:
            continue
        if statement.lstrip(" \t").startswith("["):
            header = _deepest(table)
            paths = [header[:end] for end in range(1, len(header) + 1)]
        else:
            paths = [header + path for path in _paths(table, _DEEPEST)]
        for path in paths:
            lines.setdefault(path, line)
    return lines


def _deepest(table: Any) -> KeyPath:
    """The key path of a header: `[a.b]` parses to `{a: {b: {}}}`, `[[a]]` to `{a: [{}]}`."""
    path: KeyPath = ()
    while table and isinstance(table, dict) and len(path) < _DEEPEST:
        (key, table), *_ = table.items()
        path += (key,)
    return path


def _paths(table: dict[str, Any], depth: int) -> Iterator[KeyPath]:
    for key, value in table.items():
        yield (key,)
        if isinstance(value, dict) and depth > 1:
            yield from ((key, *rest) for rest in _paths(value, depth - 1))
