"""Names of files and texts from outside, as the commands of `hotgrid tokens` print them."""

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hotgrid.errors import ArgumentError, StoreError

# A name may be any bytes; those that are not UTF-8 come as surrogates, which cannot be
# printed.
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
_CONTROLS = {
    **_SURROGATES,
    **{code: chr(0x2400 + code) for code in range(32)},
    0x7F: "\u2421",
    **dict.fromkeys(range(0x80, 0xA0), "\ufffd"),
    # Ends of lines to Unicode, and marks that turn the direction of what follows: either
    # would garble the text around it.
    **dict.fromkeys((0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd"),
}


def printable(name: object) -> str:
    """A name that can be written as UTF-8, for JSON, which escapes the rest itself."""
    return str(name).translate(_SURROGATES)


def visible(text: object) -> str:
    """A text, or the name of a file, without control characters for a terminal or a browser.

    It is one line, and the same wherever it is printed.
    """
    return str(text).translate(_CONTROLS)


def quoted(name: object) -> str:
    r"""A name to be copied into a shell; `$'\x1b'` for what cannot be printed."""
    text = str(name)
    if visible(text) == text:
        return shlex.quote(text)
    return f"$'{''.join(map(_escaped, text))}'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if visible(character) == character:
        return character
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(character))


@contextmanager
def named_visibly(*paths: Path | None) -> Iterator[None]:
    """Make file names in errors printable.

    Raises:
        ArgumentError, StoreError: The same, with visible names.
        OSError: The same, with a visible name.
    """
    try:
        yield
    except (ArgumentError, StoreError) as problem:
        message = str(problem)
        for path in paths:
            message = message.replace(str(path), visible(path))
        if message == str(problem):
            raise
        raise type(problem)(message) from None
    except OSError as problem:
        if isinstance(problem.filename, str | os.PathLike):
            problem.filename = visible(problem.filename)
        raise
