"""The regular expressions that cut texts into pieces, and which of them have a lexer."""

import functools
import time
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING

from hotgrid.errors import ArgumentError

from ._dialect import translated

if TYPE_CHECKING:
    import regex

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_CASED_WORDS = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        + f"{_CONTRACTIONS}?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        + f"{_CONTRACTIONS}?",
    ]
)

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
"""GPT-2's pattern, as tiktoken writes it."""
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
"""The pattern of `cl100k_base`."""
LLAMA3 = (
    _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Llama 3's pattern."""
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
"""Qwen 2's pattern."""
O200K = _CASED_WORDS + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
"""The pattern of `o200k_base`."""
PORTABLE = MappingProxyType(
    {
        GPT2: r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        CL100K: r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+(?![\s\S])|\s*[\r\n]|\s+(?!\S)|\s",
    }
)
"""The same where possessive repeats mean something else, or `$` the end of a line."""
LEXERS = MappingProxyType(
    {
        GPT2: "gpt2",
        PORTABLE[GPT2]: "gpt2",
        r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
        r"|\s+": "gpt2",
        CL100K: "cl100k",
        PORTABLE[CL100K]: "cl100k",
        LLAMA3: "llama3",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+": "llama3",
        QWEN2: "qwen2",
        O200K: "o200k",
    }
)
"""Every spelling of a pattern that a lexer is proven to follow, and the lexer's name."""

# Seconds of this thread's own time that a text may take, and for each of its characters.
# Patterns such as `(?:a|a)*b` take twice as long for every character.
_SECONDS = 5.0
_SECONDS_EACH = 2e-5
_SHOWN = 500


@functools.lru_cache(maxsize=32)
def compiled(pattern: str) -> "regex.Pattern[str]":
    """A pattern for the `regex` library, with the meaning that tiktoken gives it.

    Raises:
        ArgumentError: The pattern is not a regular expression.
    """
    import regex

    try:
        return regex.compile(translated(pattern), regex.V1)
    except regex.error as problem:
        raise ArgumentError(f"`pat_str` {shown(pattern)} is not a pattern: {problem}") from None
    except RecursionError:
        raise ArgumentError(
            f"`pat_str` {shown(pattern)} is not a pattern: its groups are nested too deeply"
        ) from None


def shown(pattern: str) -> str:
    """A pattern for an error message; long ones are cut."""
    return repr(pattern) if len(pattern) <= _SHOWN else f"{pattern[:_SHOWN]!r}..."


class Pieces:
    """Cuts texts by any pattern, with the `regex` library.

    Args:
        pattern: The pattern, as tiktoken reads it.
        keeps_rest: Text between two matches is a piece, too, and a match of nothing cuts
            there, as HuggingFace's `Split` has it. By default such text is left out, as
            tiktoken leaves it out, and a match of nothing is refused, where tiktoken crashes.

    Raises:
        ArgumentError: The pattern is not a regular expression.
    """

    def __init__(self, pattern: str, *, keeps_rest: bool = False) -> None:
        self.pattern = pattern
        self.keeps_rest = keeps_rest
        self._finditer = compiled(pattern).finditer

    def split(self, text: str) -> list[str]:
        """The pieces of a text."""
        return [text[begin:end] for begin, end in self.places(text)]

    def places(self, text: str) -> Iterator[tuple[int, int]]:
        """Where the pieces of a text begin and end.

        Raises:
            ArgumentError: The pattern matches nothing somewhere, or takes too long.
        """
        done = 0
        for begin, end in self._matches(text):
            if self.keeps_rest and begin > done:
                yield done, begin
            if end > begin:
                yield begin, end
            elif not self.keeps_rest and text:
                raise ArgumentError(
                    f"the pattern {shown(self.pattern)} matches the empty text at character "
                    f"{begin:,}, so text would be lost; change it so that every match has a "
                    "character, for example `+` instead of `*`"
                )
            done = end
        if self.keeps_rest and done < len(text):
            yield done, len(text)

    def _matches(self, text: str) -> Iterator[tuple[int, int]]:
        """All matches, from the left.

        An empty match right after another match does not count, and after one of
        nothing the search continues a character later.
        """
        at, last = 0, -1
        watch = _Watch(self.pattern, len(text))
        while at <= len(text):
            begin = end = -1
            try:
                for found in self._finditer(text, at, timeout=watch.seconds):
                    begin, end = found.span()
                    if begin == end:
                        break
                    yield begin, end
                    at = last = end
                else:
                    return
            except TimeoutError:
                watch.check(at)
                continue
            if end != last:
                yield begin, end
            at = end + 1
            last = end


class _Watch:
    """Bounds the time that a pattern may take for a text.

    The `regex` library counts the time of all threads, so this checks this thread's own.
    """

    def __init__(self, pattern: str, size: int) -> None:
        self.pattern = pattern
        self.seconds = self.most = _SECONDS + size * _SECONDS_EACH
        self.begin = time.thread_time()

    def check(self, at: int) -> None:
        """Raise an error if the time is up, else grant more."""
        if time.thread_time() - self.begin >= self.most:
            raise ArgumentError(
                f"the pattern {shown(self.pattern)} takes too long on this text: more than "
                f"{self.most:.0f} s, and the piece at character {at:,} is not found; change it "
                "so that it does not try the same characters in many ways"
            )
        self.seconds *= 2


def splitter(pattern: str) -> Callable[[str], list[str]]:
    """Cuts a text by any pattern, with the `regex` library.

    Text that the pattern does not match is left out, as in tiktoken.

    Raises:
        ArgumentError: The pattern is not a regular expression.
    """
    return Pieces(pattern).split
