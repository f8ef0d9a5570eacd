"""The two dialects of patterns, and how their escapes and brackets are read."""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ._character_sets import CharacterSet, common, negated, union

_HEX = "0-9A-Fa-f"
_RUST_POSIX = {
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
_ONIGURUMA_POSIX = {
    "alnum": r"\p{Alphabetic}\d",
    "alpha": r"\p{Alphabetic}",
    "digit": r"\d",
    "lower": r"\p{Lowercase}",
    "punct": r"\p{P}\p{S}",
    "space": r"\s",
    "upper": r"\p{Uppercase}",
}
# General categories by their short and long names, and properties that all engines have.
_PROPERTIES = frozenset(
    (
        *("l", "lu", "ll", "lt", "lc", "lm", "lo", "m", "mn", "mc", "me", "n", "nd", "nl"),
        *("no", "p", "pc", "pd", "ps", "pe", "pi", "pf", "po", "s", "sm", "sc", "sk", "so"),
        *("z", "zs", "zl", "zp", "c", "cc", "cf", "cn", "co"),
        *("letter", "uppercaseletter", "lowercaseletter", "titlecaseletter"),
        *("modifierletter", "otherletter", "mark", "nonspacingmark", "spacingmark"),
        *("enclosingmark", "number", "decimalnumber", "letternumber", "othernumber"),
        *("punctuation", "connectorpunctuation", "dashpunctuation", "openpunctuation"),
        *("closepunctuation", "initialpunctuation", "finalpunctuation", "otherpunctuation"),
        *("symbol", "mathsymbol", "currencysymbol", "modifiersymbol", "othersymbol"),
        *("separator", "spaceseparator", "lineseparator", "paragraphseparator"),
        *("other", "control", "format", "unassigned", "privateuse"),
        *("alphabetic", "uppercase", "lowercase", "whitespace", "emoji", "any", "ascii"),
        *("joincontrol", "ideographic"),
    )
)
_POSIX = re.compile(r"\[:(\^?)(\w+):\]")
_SCRIPT = re.compile(r"(?i)(gc|general_?category|sc|script)[=:](.*)", re.DOTALL)
_PROPERTY = re.compile(r"\\([pP])(?:\{(\^?)([^}]*)\}|([A-Za-z]))")
_NUMBERS = re.compile(
    r"\\(?:[xuU]\{([0-9A-Fa-f]{1,8})\}|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))"
)
_CONTROLS = MappingProxyType(
    {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a", "e": "\x1b"}
)
_CLASSES = MappingProxyType(
    {"h": f"[{_HEX}]", "H": f"[^{_HEX}]", "N": r"[^\n]", "O": r"[\s\S]"}
    | {letter: f"\\{letter}" for letter in "dDsSwW"}
)
# What several letters of `(?i)` match as one in Oniguruma, such as "ss" for "ß".
_ODD = "ßŉǰΐΰևẖẗẘẙẚẞﬀﬁﬂﬃﬄﬅﬆﬓﬔﬕﬖﬗİᾳῃῳ"


class RefusedError(Exception):
    """A construct that is not known, or is not well formed."""

    def __init__(self, construct: str, why: str) -> None:
        super().__init__(f"{construct!r} {why}")


@dataclass(frozen=True)
class Dialect:
    """The meaning of symbols in an engine."""

    words: str
    r"""`\w`, written out."""
    words_in_brackets: str
    """The same within brackets."""
    flags: Mapping[str, str]
    """Its flags by ours: i any case, m lines, s the dot takes all, x blanks do not count."""
    posix: Mapping[str, str]
    """The characters of `[:alpha:]` and similar classes."""
    start: str
    """`^`"""
    line_start: str
    """`^` where lines count"""
    end: str
    """`$`"""
    line_end: str = r"(?![^\n])"
    """`$` where lines count"""


TIKTOKEN = Dialect(
    words=r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]",
    words_in_brackets=r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}",
    flags={"i": "i", "m": "m", "s": "s", "x": "x", "u": ""},
    posix=_RUST_POSIX,
    start=r"\A",
    line_start=r"(?<![^\n])",
    end=r"(?![\s\S])",
)
"""Rust's fancy-regex, as tiktoken uses it."""
HUGGINGFACE = Dialect(
    words=r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}²³¹¼½¾]",
    words_in_brackets=r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}",
    flags={"i": "i", "m": "s", "x": "x"},
    posix=_ONIGURUMA_POSIX,
    # No line begins after the last newline of a text.
    start=r"(?:\A|(?<=\n)(?=[\s\S]))",
    line_start="",
    end=r"(?![^\n])",
)
"""Oniguruma, as HuggingFace's tokenizers use it."""


class Signs:
    """Reads the escapes and brackets of a pattern."""

    def __init__(self, pattern: str, dialect: Dialect) -> None:
        self.pattern = pattern
        self.dialect = dialect
        self.at = 0

    def sees(self, text: str) -> bool:
        """Whether this comes next."""
        return self.pattern.startswith(text, self.at)

    def takes(self, text: str) -> bool:
        """Whether this comes next; skip it if so."""
        found = self.sees(text)
        self.at += len(text) * found
        return found

    def match(self, what: re.Pattern[str]) -> re.Match[str] | None:
        """Match a pattern at the present position."""
        return what.match(self.pattern, self.at)

    def knows_name(self, begin: str) -> bool:
        """Whether a named group may begin like this."""
        return self.dialect is TIKTOKEN or not begin.startswith("(?P")

    def refuse_folds(self, run: str) -> None:
        """Refuse case-insensitive letters that Oniguruma folds together."""
        folded = run.casefold()
        for odd in _ODD:
            if odd.casefold() in folded:
                raise RefusedError(run, f"also matches {odd!r} in `(?i)`, which is not known")

    def code_point(self) -> int | None:
        """A character by its escape, or None where a class of them comes."""
        rust = self.dialect is TIKTOKEN
        if found := self.match(_NUMBERS):
            code = int(next(filter(None, found.groups())), 16)
            # Others are bytes there, or not numbers.
            known = rust or found[3] or (self.sees(r"\x") and (found[1] or code < 0x80))
            if not known or not 0 <= code < 0x110000 or 0xD800 <= code < 0xE000:
                raise RefusedError(found[0], "is not a character")
            self.at = found.end()
            return code
        letter = self.pattern[self.at + 1 : self.at + 2]
        if control := _CONTROLS.get(letter):
            self.at += 2
            return ord(control)
        if not letter or (letter.isascii() and letter.isalnum()):
            return None
        if letter in "<>" and rust:
            raise RefusedError(f"\\{letter}", "is an assertion, which brackets cannot contain")
        self.at += 2
        return ord(letter)

    def class_escape(self) -> str:
        """A class of characters by its escape."""
        letter = self.pattern[self.at + 1 : self.at + 2]
        if found := self.match(_PROPERTY):
            self.at = found.end()
            return self._property(found)
        if letter not in _CLASSES or not letter:
            raise RefusedError(f"\\{letter}", "is not known")
        self.at += 2
        return _CLASSES[letter]

    def _property(self, found: re.Match[str]) -> str:
        name = found[3] or found[4] or ""
        if self.dialect is TIKTOKEN and (chosen := _SCRIPT.fullmatch(name)):
            name = chosen[2]
        elif found[4] and self.dialect is HUGGINGFACE:
            raise RefusedError(found[0], "needs braces")
        if not _known_property(name):
            raise RefusedError(found[0], "is not a known property")
        upside = (found[1] == "P") != (found[2] == "^")
        return f"\\{'P' if upside else 'p'}{{{name}}}"

    def brackets(self) -> CharacterSet:
        """The content of the brackets that begin here; blanks count, also in `(?x)`."""
        begin = self.at
        self.at += 1
        upside = self.takes("^")
        members: list[tuple[int, int] | str | CharacterSet] = []
        if self.takes("]"):
            members.append((ord("]"), ord("]")))
        left: CharacterSet | None = None
        joint = ""
        while not self.takes("]"):
            if self.at >= len(self.pattern):
                raise RefusedError(self.pattern[begin : begin + 20], "is not closed")
            if sign := next((each for each in ("&&", "--", "~~") if self._joins(each)), ""):
                if not members:
                    raise RefusedError(sign, "joins nothing")
                self.at += 2
                left = _joined(left, joint, union(members))
                joint, members = sign, []
            else:
                members.append(self._member())
        found = _joined(left, joint, union(members))
        return negated(found) if upside else found

    def _joins(self, sign: str) -> bool:
        if not self.sees(sign) or (sign == "~~" and self.dialect is HUGGINGFACE):
            return False
        if sign == "--" and self.dialect is HUGGINGFACE:
            raise RefusedError("--", "is not a range")
        return True

    def _member(self) -> tuple[int, int] | str | CharacterSet:
        if found := self.match(_POSIX):
            if (text := self.dialect.posix.get(found[2])) is None:
                raise RefusedError(found[0], "is not known")
            self.at = found.end()
            return Signs(f"[{found[1]}{text}]", self.dialect).brackets()
        if self.sees("["):
            return self.brackets()
        first = self._character()
        if not isinstance(first, int):
            if self.sees("-") and not self.pattern.startswith(("]", "-"), self.at + 1):
                raise RefusedError(f"{first}-", "begins a range")
            return first
        if not self.sees("-") or self.pattern.startswith(("]", "-"), self.at + 1):
            return first, first
        if first == ord("-") and self.pattern[self.at - 2] not in "[^":
            raise RefusedError("-", "may mean a range; write `\\-`")
        self.at += 1
        last = self._character() if not self.sees("[") else "["
        if not isinstance(last, int) or last < first:
            raise RefusedError(f"{chr(first)}-", "begins a range that has no end")
        return first, last

    def _character(self) -> int | str | CharacterSet:
        if self.at >= len(self.pattern):
            raise RefusedError("[", "is not closed")
        if not self.sees("\\"):
            self.at += 1
            return ord(self.pattern[self.at - 1])
        if self.sees(r"\b") and self.dialect is HUGGINGFACE:
            self.at += 2
            return 8
        if (code := self.code_point()) is not None:
            return code
        escape = self.class_escape()
        if escape in (r"\w", r"\W"):
            words = Signs(f"[{self.dialect.words_in_brackets}]", self.dialect).brackets()
            return words if escape == r"\w" else negated(words)
        return escape_set(escape) if escape.startswith("[") else escape


def escape_set(escape: str) -> CharacterSet:
    """The class of an escape, as a set."""
    if escape.startswith("["):
        return Signs(escape, TIKTOKEN).brackets()
    return CharacterSet((escape,))


def _joined(left: CharacterSet | None, sign: str, right: CharacterSet) -> CharacterSet:
    if left is None:
        return right
    if not right.members and right.both is None:
        raise RefusedError(sign, "joins nothing")
    if sign == "&&":
        return common(left, right)
    less = common(left, negated(right))
    return less if sign == "--" else union((less, common(right, negated(left))))


@functools.lru_cache(maxsize=256)
def _known_property(name: str) -> bool:
    """Whether it is a general category, a script or another known property."""
    import regex

    plain = re.sub(r"[\s_-]", "", name).lower()
    if plain in _PROPERTIES:
        return True
    try:
        regex.compile(rf"\p{{Script={name}}}")
    except regex.error:
        return False
    return plain.isalpha()
