"""Patterns as tiktoken's engine reads them, written for the `regex` library.

Both know Unicode classes, look-around and possessive repeats, but some signs mean one thing
there and another here. What is not told apart below is the same in both.
"""

import re
from types import MappingProxyType

from hotgrid.errors import ArgumentError

_HEX = "0-9A-Fa-f"
# Named classes are of ASCII alone.
_POSIX = MappingProxyType(
    {
        "alnum": "0-9A-Za-z",
        "alpha": "A-Za-z",
        "ascii": r"\x00-\x7f",
        "blank": r"\t\x20",
        "cntrl": r"\x00-\x1f\x7f",
        "digit": "0-9",
        "graph": "!-~",
        "lower": "a-z",
        "print": r"\x20-~",
        "punct": r"!-/:-@\[-`{-~",
        "space": r"\t\n\v\f\r\x20",
        "upper": "A-Z",
        "word": "0-9A-Za-z_",
        "xdigit": _HEX,
    }
)
# Escapes outside of classes and within them.
_ESCAPES = MappingProxyType(
    {
        "z": (r"\Z", r"\z"),
        "Z": (r"(?=\n*\Z)", r"\Z"),
        "h": (f"[{_HEX}]", f"[{_HEX}]"),
        "H": (f"[^{_HEX}]", f"[^{_HEX}]"),
        "e": (r"\x1b", r"\x1b"),
        "O": (r"[\s\S]", r"[\s\S]"),
        "N": (r"[^\n]", r"[^\n]"),
    }
)
_NUMBER = re.compile(r"\\[xuU]\{\s*([0-9A-Fa-f]{1,8})\s*\}")
_BACK = re.compile(r"\\k<(\w+)>")
_SHORT_CLASS = re.compile(r"\\([pP])([A-Za-z])")
_NAMED = re.compile(r"\[:(\^?)(\w+):\]")
# A group of flags, such as (?im) or (?i-m:
_LINES = re.compile(r"\(\?[a-zA-Z]*m")
_CALL = re.compile(r"\(\?(?:R|\d|&|P>|[+-]\d)")


def translated(pattern: str) -> str:
    r"""The pattern for `regex` in its version 1, which knows classes within classes.

    Raises:
        ArgumentError: It calls groups of its own, which tiktoken's engine does not know.

    Example:
        >>> print(translated(r"[\w--\h]+$"), translated("[[:digit:]|]"))
        [\w--[0-9A-Fa-f]]+\Z [[0-9]\|]
    """
    if _CALL.search(pattern):
        raise ArgumentError(
            f"`pat_str` {pattern!r} is not a pattern: groups cannot be called, nor lines end "
            "as `(?R)` has it"
        )
    ends_lines = _LINES.search(pattern) is not None
    out: list[str] = []
    at = depth = 0
    while at < len(pattern):
        sign = pattern[at]
        taken = 1
        if sign == "\\":
            sign, taken = _escape(pattern, at, depth > 0)
        elif sign == "[":
            named = _NAMED.match(pattern, at) if depth else None
            if named and named[2] in _POSIX:
                sign, taken = f"[{named[1]}{_POSIX[named[2]]}]", len(named[0])
            else:
                taken = 1 + pattern.startswith("^", at + 1)
                # A bracket that comes first closes nothing.
                first = pattern.startswith("]", at + taken)
                sign, taken = pattern[at : at + taken] + r"\]" * first, taken + first
                depth += 1
        elif depth:
            depth -= sign == "]"
            # Two bars would join classes.
            sign = r"\|" if sign == "|" else sign
        elif sign == "$" and not ends_lines:
            sign = r"\Z"
        out.append(sign)
        at += taken
    return "".join(out)


def _escape(pattern: str, at: int, in_class: bool) -> tuple[str, int]:
    """An escape for the `regex` library, and how many signs it was."""
    if number := _NUMBER.match(pattern, at):
        return f"\\U{int(number[1], 16):08x}", len(number[0])
    if (back := _BACK.match(pattern, at)) and not in_class:
        return f"(?P={back[1]})", len(back[0])
    if short := _SHORT_CLASS.match(pattern, at):
        return f"\\{short[1]}{{{short[2]}}}", len(short[0])
    letter = pattern[at + 1 : at + 2]
    if letter in _ESCAPES and not (letter == "N" and pattern.startswith("{", at + 2)):
        return _ESCAPES[letter][in_class], 2
    return pattern[at : at + 2], 2
