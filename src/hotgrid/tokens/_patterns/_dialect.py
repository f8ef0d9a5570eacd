"""Patterns as tiktoken's and HuggingFace's engines read them, for the `regex` library.

tiktoken's engine is Rust's fancy-regex, HuggingFace's is Oniguruma with Ruby's syntax. Many
signs mean one thing in the one and another in the other. `translated` reads a pattern sign by
sign and writes it in a form that means the same to `regex` and to both engines: letters in any
case and classes that differ are written out. What it does not know it refuses, because a
pattern that is read wrongly gives other tokens without an error.
"""

import re
from types import MappingProxyType

from hotgrid.errors import ArgumentError

from ._character_sets import CharacterSet, any_case, cases, folds_to_many
from ._classes import HUGGINGFACE, TIKTOKEN, Dialect, RefusedError, Signs, escape_set

_SPECIAL = frozenset("\\.[]{}()*+?^$|")
_SHORT = MappingProxyType({"\n": r"\n", "\r": r"\r", "\t": r"\t"})
_REPEAT = re.compile(r"([*+?])|\{(\d+)(?:(,)(\d*))?\}|\{,(\d+)\}")
_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])")
_NAME = re.compile(r"\(\?P?<(\w+)>")
_BACK = re.compile(r"\\(?:([1-9])(?!\d)|k<(\w+)>)|\(\?P=(\w+)\)")
_PLAIN_GROUPS = ("(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>")
_PLACES = ("(?=", "(?!", "(?<=", "(?<!", r"\A", r"\b", r"\B")
_WITHIN = re.compile(r"\[:?\^|&&")
_COMMENT = re.compile(r"\(\?#[^)]*\)")
_BLANKS = re.compile(r"(?:\s|#[^\n]*)+")
_END = r"(?![\s\S])"


def translated(pattern: str, dialect: Dialect = TIKTOKEN, *, portable: bool = False) -> str:
    r"""The pattern for `regex` in its version 1.

    Args:
        pattern: A pattern.
        dialect: Which engine it was written for.
        portable: Write it so that tiktoken and HuggingFace read it alike, too.

    Raises:
        ArgumentError: It is not a pattern, or uses a construct that is not supported.

    Example:
        >>> print(translated(r"\h+$"), translated("(?i:d)"), translated("[[:digit:]|]"))
        [0-9A-Fa-f]+(?![\s\S]) (?:[Dd]) [0-9\|]
        >>> print(translated(r"\p{N}{1,3}+$", HUGGINGFACE))
        (?:\p{N}{1,3})+(?![^\n])
    """
    reader = _Reader(pattern, dialect, portable)
    try:
        text = reader.alternatives(frozenset())
        if reader.at < len(pattern):
            raise RefusedError(")", "closes no group")
    except RefusedError as problem:
        shown = repr(pattern) if len(pattern) <= 500 else f"{pattern[:500]!r}..."
        raise ArgumentError(f"`pat_str` {shown} is not a pattern: {problem}") from None
    except RecursionError:
        raise ArgumentError(
            f"`pat_str` {pattern[:500]!r}... is not a pattern: its groups are nested too deeply"
        ) from None
    return text


def portable(pattern: str) -> str | None:
    """A tiktoken pattern for HuggingFace, or None if its engine cannot express it."""
    try:
        text = translated(pattern, portable=True)
        return text if translated(text, HUGGINGFACE) == text else None
    except ArgumentError:
        return None


class _Reader(Signs):
    """Reads a pattern from the left; `at` is how far it is."""

    def __init__(self, pattern: str, dialect: Dialect, portable: bool) -> None:
        super().__init__(pattern, dialect)
        self.word = dialect.words if portable or dialect is HUGGINGFACE else r"\w"
        self.groups: list[str | None] = []
        # Adjacent case-insensitive letters, for folds to several letters.
        self.run = ""

    def alternatives(self, flags: frozenset[str]) -> str:
        """Everything up to the end of the group."""
        parts: list[str] = []
        opened = 0
        while True:
            self._skip(flags)
            if self.at == len(self.pattern) or self.sees(")"):
                return "".join(parts) + ")" * opened
            if self.takes("|"):
                self.run = ""
                parts.append("|")
            elif (found := self.match(_FLAGS)) and found[3] == ")":
                self.at = found.end()
                flags = self._changed(flags, found)
                # In Ruby's syntax what follows is a group, with all its alternatives.
                opened += self.dialect is HUGGINGFACE
                parts.append("(?:" * (self.dialect is HUGGINGFACE))
            else:
                parts.append(self._repeated(flags))

    def _skip(self, flags: frozenset[str]) -> None:
        """Skip comments, and blanks where they do not count."""
        while found := self.match(_COMMENT) or ("x" in flags and self.match(_BLANKS)):
            self.at = found.end()

    def _changed(self, flags: frozenset[str], found: re.Match[str]) -> frozenset[str]:
        known = self.dialect.flags
        for letter in found[1] + (found[2] or ""):
            if letter not in known:
                raise RefusedError(found[0], f"the flag {letter!r} is not known")
        added = {known[letter] for letter in found[1]}
        return (flags | added) - {known[letter] for letter in found[2] or ""} - {""}

    def _repeated(self, flags: frozenset[str]) -> str:
        """One item and its repeats."""
        begin = self.at
        part = self._one(flags)
        self._skip(flags)
        found = self.match(_REPEAT)
        if found is None:
            if self.match(re.compile(r"\{[\s\d,]*\}")):
                raise RefusedError(
                    self.pattern[begin : self.at + 1], "is not a number of repeats"
                )
            return part
        self.run = ""
        self.at = found.end()
        sign, least, comma, most, only_most = found.groups()
        if least and most and int(least) > int(most):
            raise RefusedError(found[0], "is not a number of repeats")
        count = sign or (f"{{0,{only_most}}}" if only_most else found[0])
        if self.dialect is HUGGINGFACE and part.startswith(_PLACES):
            raise RefusedError(self.pattern[begin : self.at], "repeats an assertion")
        if self.dialect is HUGGINGFACE and not sign:
            # There `{2}?` is twice or not at all, and `{2,3}+` is any number of times.
            if self.takes("+"):
                part, count = f"(?:{part}{count})", "+"
            elif not (comma or only_most) and self.takes("?"):
                part, count = f"(?:{part}{count})", "?"
        if self.takes("?"):
            # A fixed count is neither greedy nor lazy.
            part += count if least and not comma else f"{count}?"
        elif self.takes("+"):
            part = f"{part}{count}+" if sign else f"(?>{part}{count})"
        else:
            part += count
        self._skip(flags)
        if self.match(_REPEAT):
            raise RefusedError(self.pattern[begin : self.at + 1], "repeats a repetition")
        return part

    def _one(self, flags: frozenset[str]) -> str:
        sign = self.pattern[self.at]
        if sign == "(":
            return self._group(flags)
        if sign == "\\":
            return self._escape(flags)
        if self.match(_REPEAT):
            raise RefusedError(sign, "repeats nothing")
        if sign == "[":
            self.run = ""
            begin = self.at
            chars = self.brackets()
            written = self.pattern[begin : self.at]
            # Oniguruma negates and intersects sets before case folding.
            if self.dialect is HUGGINGFACE and "i" in flags and _WITHIN.search(written, 1):
                raise RefusedError(written, "negates or intersects sets in brackets in `(?i)`")
            return str(self._cased(chars, flags))
        self.at += 1
        lines = "m" in flags
        signs = {
            ".": r"[\s\S]" if "s" in flags else ".",
            "^": self.dialect.line_start if lines else self.dialect.start,
            "$": self.dialect.line_end if lines else self.dialect.end,
        }
        if sign in signs:
            self.run = ""
        return signs.get(sign) or self._letter(sign, flags)

    def _group(self, flags: frozenset[str]) -> str:
        if (name := self.match(_NAME)) and self.knows_name(name[0]):
            begin = f"(?<{name[1]}>"
            self.at = name.end()
            self.groups.append(name[1])
        elif found := self.match(_FLAGS):  # `(?i)` has been taken already
            begin, self.at = "(?:", found.end()
            flags = self._changed(flags, found)
        elif begin := next((each for each in _PLAIN_GROUPS if self.sees(each)), ""):
            self.at += len(begin)
        elif back := self.match(_BACK):
            return self._back(back, flags)
        elif self.sees("(?") or self.sees("(*"):
            raise RefusedError(self.pattern[self.at : self.at + 4], "is not known")
        else:
            begin = "("
            self.at += 1
            self.groups.append(None)
        inner = self.alternatives(flags)
        if not self.takes(")"):
            raise RefusedError(begin, "is not closed")
        return f"{begin}{inner})"

    def _letter(self, letter: str, flags: frozenset[str]) -> str:
        if "i" not in flags:
            self.run = ""
            return _SHORT.get(letter) or ("\\" if letter in _SPECIAL else "") + letter
        if self.dialect is HUGGINGFACE:
            self.run += letter
            self.refuse_folds(self.run)
        if len(all_cases := cases(letter)) == 1:
            return self._letter(letter, frozenset())
        return str(CharacterSet(tuple((ord(each), ord(each)) for each in all_cases)))

    def _cased(self, chars: CharacterSet, flags: frozenset[str]) -> CharacterSet:
        if "i" not in flags:
            return chars
        if self.dialect is HUGGINGFACE and not chars.negated and folds_to_many(chars):
            raise RefusedError(str(chars)[:80], "has letters that fold to several in `(?i)`")
        return any_case(chars)

    def _back(self, back: re.Match[str], flags: frozenset[str]) -> str:
        name = back[2] or back[3]
        known = name in self.groups if name else int(back[1]) <= len(self.groups)
        if "i" in flags or not known or (name and back[3] and self.dialect is HUGGINGFACE):
            raise RefusedError(back[0], "refers to no group before it, or ignores case")
        self.at = back.end()
        return f"(?P={name})" if name else f"\\{back[1]}"

    def _escape(self, flags: frozenset[str]) -> str:
        if back := self.match(_BACK):
            self.run = ""
            return self._back(back, flags)
        letter = self.pattern[self.at + 1 : self.at + 2]
        if place := self._place(letter):
            self.run = ""
            self.at += 2
            return place
        if (code := self.code_point()) is not None:
            return self._letter(chr(code), flags)
        self.run = ""
        escape = self.class_escape()
        if escape in (r"\w", r"\W"):
            chars = CharacterSet((self.word,), letter == "W")
            return escape if self.word == r"\w" else self._bare(chars)
        chars = escape_set(escape)
        # Oniguruma gives a class its other cases within brackets only.
        if "i" in flags and self.dialect is TIKTOKEN and escape.startswith(r"\p"):
            chars = any_case(chars)
        elif "i" in flags and self.dialect is TIKTOKEN and escape.startswith(r"\P"):
            chars = any_case(CharacterSet((r"\p" + escape[2:],)))
            chars = CharacterSet(chars.members, negated=True)
        else:
            return escape
        return str(chars)

    @staticmethod
    def _bare(chars: CharacterSet) -> str:
        inner = "".join(str(member) for member in chars.members)
        return f"[{'^' * chars.negated}{inner[1:-1]}]"

    def _place(self, letter: str) -> str | None:
        """A place between characters."""
        if letter == "b" and self.sees(r"\b{"):
            raise RefusedError(r"\b{", "is not known")
        word, tiktoken = self.word, self.dialect is TIKTOKEN
        begin, end = f"(?<!{word})(?={word})", f"(?<={word})(?!{word})"
        within = f"(?<={word})(?={word})|(?<!{word})(?!{word})"
        own = word == r"\w"
        return {
            "A": r"\A",
            "z": _END,
            "Z": rf"(?=\n{'*' if tiktoken else '?'}{_END})",
            "b": r"\b" if own else f"(?:{begin}|{end})",
            "B": r"\B" if own else f"(?:{within})",
            "<": f"(?:{begin})" if tiktoken else None,
            ">": f"(?:{end})" if tiktoken else None,
        }.get(letter)
