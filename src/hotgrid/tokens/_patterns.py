"""The regular expressions that cut texts into pieces, and which of them have a lexer."""

import functools
from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING

from hotgrid.errors import ArgumentError

from ._regex_dialect import translated

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
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
LLAMA3 = (
    _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = _CASED_WORDS + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"

# The same where possessive repeats mean something else, or `$` the end of a line.
PORTABLE = MappingProxyType(
    {
        GPT2: r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        CL100K: r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+(?![\s\S])|\s*[\r\n]|\s+(?!\S)|\s",
    }
)

# Every spelling of a pattern that a lexer is proven to follow, and the lexer's name.
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


_SHOWN = 500


@functools.lru_cache(maxsize=32)
def compiled(pattern: str) -> "regex.Pattern[str]":
    """A pattern for the `regex` library, with the meaning that tiktoken gives it.

    Raises:
        ArgumentError: The pattern is no regular expression.
    """
    import regex

    try:
        # Letters fold to single ones, as they do in tiktoken: "ß" is not "ss".
        return regex.compile(f"(?-f){translated(pattern)}", regex.V1)
    except regex.error as problem:
        raise ArgumentError(
            f"`pat_str` {_shown(pattern)} is not a pattern: {problem}"
        ) from None
    except RecursionError:
        raise ArgumentError(
            f"`pat_str` {_shown(pattern)} is not a pattern: groups within groups, too many"
        ) from None


def _shown(pattern: str) -> str:
    return repr(pattern) if len(pattern) <= _SHOWN else f"{pattern[:_SHOWN]!r}..."


def splitter(pattern: str) -> Callable[[str], list[str]]:
    """What cuts a text by any pattern, with the `regex` library.

    Text that the pattern does not match is left out, as tiktoken leaves it out.

    Raises:
        ArgumentError: The pattern is no regular expression.
    """
    pieces = compiled(pattern)

    def split(text: str) -> list[str]:
        return [found.group() for found in pieces.finditer(text) if found.group()]

    return split
