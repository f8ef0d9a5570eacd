"""Patterns: how texts are cut into pieces, by name or as a regular expression."""

from ._classes import HUGGINGFACE as HUGGINGFACE
from ._dialect import portable as portable, translated as translated
from ._names import PATTERNS as PATTERNS, pattern_named as pattern_named
from ._patterns import (
    CL100K as CL100K,
    GPT2 as GPT2,
    LEXERS as LEXERS,
    LLAMA3 as LLAMA3,
    O200K as O200K,
    PORTABLE as PORTABLE,
    QWEN2 as QWEN2,
    compiled as compiled,
    shown as shown,
    splitter as splitter,
)
from ._pieces import RegexPieces as RegexPieces
