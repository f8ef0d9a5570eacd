"""The lexers do what the regular expressions say, on every short string there is.

Characters that no pattern tells apart are one cell. With a character for each cell, all
strings of up to four of them are all cases that a pattern can meet within four characters.
"""

import random
from itertools import product

import pytest
import regex
import tiktoken

from hotgrid import _native
from hotgrid.tokens import Encoding
from hotgrid.tokens._patterns import CL100K, GPT2, LEXERS, LLAMA3, O200K, QWEN2

BYTES = {bytes([value]): value for value in range(256)}
# Capitals, small letters and the letters of contractions; the long s; letters that are
# both; marks; numbers; blanks; the signs that patterns name; a sign they do not.
CELLS = [*"BSLEbsdlver", "ſ", "ǅ", "ʰ", "中", "\u0301", "1", "½", *" \t\n\r\u00a0'/."]
# Beyond them: one more of each, to be mixed into longer strings.
MORE = [
    *"TMDRVtm",
    "Ⅷ",
    "٣",
    "é",
    "Ω",
    "क",
    "\u093f",
    "\u0085",
    "\u3000",
    "\u200b",
    *"👍|\x1c\x00",
]
EVERY_CHARACTER = "".join(chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000)


def lexer(pattern: str):
    return Encoding("x", pat_str=pattern, mergeable_ranks=BYTES, special_tokens={}).split


def unlike(pattern: str, texts) -> list[str]:
    ours, theirs = lexer(pattern), regex.compile(pattern).findall
    return [text for text in texts if ours(text) != theirs(text)]


@pytest.mark.parametrize(
    "pattern", [GPT2, *(pytest.param(each, marks=pytest.mark.long) for each in (CL100K, O200K))]
)
def test_all_strings_of_up_to_four_cells(pattern: str):
    for size in range(5):
        found = unlike(pattern, map("".join, product(CELLS, repeat=size)))
        assert not found, found[:10]


@pytest.mark.parametrize("pattern", [*LEXERS], ids=lambda pattern: LEXERS[pattern])
def test_every_spelling_of_a_pattern_on_strings_of_three(pattern: str):
    found = unlike(pattern, map("".join, product(CELLS, repeat=3)))
    assert not found, found[:10]


@pytest.mark.parametrize("pattern", [GPT2, CL100K, LLAMA3, QWEN2, O200K])
def test_longer_strings(pattern: str):
    """Of 64 bytes and more, so that the vector code has its say."""
    dice = random.Random(0)
    ascii_cells = [cell for cell in CELLS if cell.isascii()]
    texts = [
        "".join(dice.choices(cells, k=dice.randint(5, 200)))
        for cells in (ascii_cells, CELLS, [*CELLS, *MORE], [*"ab", " ", "\n", "'", "s"])
        for _ in range(1500)
    ]
    found = unlike(pattern, texts)
    assert not found, found[:3]


def matching(pattern: str) -> set[int]:
    """Code points that tiktoken's own engine matches: it drops all other text."""
    encoding = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=BYTES, special_tokens={})
    return set(map(ord, bytes(encoding.encode_ordinary(EVERY_CHARACTER)).decode()))


@pytest.mark.parametrize(
    ("trait", "pattern"),
    [
        (1, r"\p{L}"),
        (2, r"\p{N}"),
        (4, r"\s"),
        (8, r"[\r\n]"),
        (16, r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"),
        (32, r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"),
    ],
)
def test_the_class_of_every_code_point(trait: int, pattern: str):
    traits = _native.core().unicode_traits()
    assert len(traits) == 0x110000
    assert {point for point, found in enumerate(traits) if found & trait} == matching(pattern)


def test_the_unicode_version_is_that_of_the_reference():
    version = _native.core().unicode_version
    assert matching(rf"\p{{Age={version}}}")
    newer = f"{int(version.split('.')[0]) + 1}.0"
    with pytest.raises(ValueError):
        matching(rf"\p{{Age={newer}}}")


def test_contractions_fold_case_as_the_reference_does():
    folded = {chr(point) for point in matching("(?i:[sdmtlver])")}
    assert folded == {*"sdmtlverSDMTLVER", "ſ"}
