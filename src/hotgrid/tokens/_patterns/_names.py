"""The names of patterns."""

from types import MappingProxyType

from hotgrid.errors import ArgumentError, near

from ._patterns import CL100K, GPT2, LLAMA3, O200K, QWEN2

PATTERNS = MappingProxyType(
    {"gpt2": GPT2, "cl100k": CL100K, "llama3": LLAMA3, "qwen2": QWEN2, "o200k": O200K}
)
"""The patterns that have a name."""

# Names of encodings are accepted for their patterns.
_OF_ENCODINGS = MappingProxyType(
    {
        "r50k_base": GPT2,
        "p50k_base": GPT2,
        "p50k_edit": GPT2,
        "cl100k_base": CL100K,
        "o200k_base": O200K,
        "o200k_harmony": O200K,
        "hotgrid_32k": O200K,
    }
)


def pattern_named(pattern: str) -> str:
    """The regular expression of a name, or the one that was given.

    Raises:
        ArgumentError: It is almost a name. As a regular expression it would match only that
            word, and all other text would be lost.
        TypeError: It is not a str.
    """
    if not isinstance(pattern, str):
        raise TypeError(
            "the pattern must be a regular expression as str, or one of "
            f"{', '.join(PATTERNS)}; got {pattern!r}"
        )
    if found := PATTERNS.get(pattern) or _OF_ENCODINGS.get(pattern):
        return found
    word = pattern.replace("_", "").replace("-", "").isalnum()
    if word and (hint := near(pattern, [*PATTERNS, *_OF_ENCODINGS])):
        raise ArgumentError(
            f"there is no pattern `{pattern}`{hint} There are {', '.join(PATTERNS)}, and any "
            f"regular expression; to match that word, write (?:{pattern})"
        )
    return pattern
