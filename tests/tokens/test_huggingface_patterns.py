"""Patterns of a `tokenizer.json` mean what they mean to HuggingFace, and no text is lost."""

import pickle
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from hotgrid.errors import ArgumentError
from hotgrid.tokens import Encoding, load_huggingface, save_huggingface
from hotgrid.tokens._patterns import CL100K

from .test_huggingface import cut_by, written
from .test_lexer_proof import BYTES

# Given by `pre_tokenizers.Split(Regex(pattern), "isolated")` of tokenizers 0.23.3.
CUTS = [
    ("(?=\\p{Lu})", "fooBarB", ["foo", "Bar", "B"]),
    ("\\b", "foo Bar!", ["foo", " ", "Bar", "!"]),
    ("(?<=\\s)", "a  b c", ["a ", " ", "b ", "c"]),
    ("\\s*", "a  b", ["a", "  ", "b"]),
    ("a|", "bab", ["b", "a", "b"]),
    ("", "ab", ["a", "b"]),
    ("\\p{N}{1,3}+|\\P{N}+", "12345 ab", ["12345", " ab"]),
    ("\\p{N}{2}?b", "1234b b", ["12", "34b", " ", "b"]),
    ("(?i)\\p{Lu}+", "abAB é", ["ab", "AB", " é"]),
    ("(?i)[^\\p{Lu}]+", "abAB é", ["abAB", " ", "é"]),
    ("(?i)[a-z]+", "iIİıKk", ["iI", "İı", "Kk"]),
    ("(?i)\\p{Greek}+", "µμΩ", ["µ", "μΩ"]),
    ("^\\s+", "  a\n  b\n", ["  ", "a\n", "  ", "b\n"]),
    ("\\s+$", "a  \n  b  \n", ["a", "  ", "\n  b", "  \n"]),
    ("\\w+|\\W", "a ٣½Ⅷ⁀_\u200d中", ["a", " ", "٣½Ⅷ⁀_", "\u200d", "中"]),
    ("[\\w]+|\\W", "a½²b", ["a", "½²", "b"]),
    ("\\b.", "½ a", ["½", " ", "a"]),
    ("(?m)a.b", "a\nb a.b", ["a\nb", " ", "a.b"]),
    ("a.b", "a\nb a.b", ["a\nb ", "a.b"]),
    ("a(?i)b|c", "aB aC C c", ["aB", " ", "aC", " C c"]),
    ("\\n\\Z|a", "a\n\n", ["a", "\n", "\n"]),
    ("\\<a|a\\>", "<a a>", ["<a", " ", "a>"]),
    ("[[:alpha:]]+", "aé1ⓐ", ["aé", "1", "ⓐ"]),
    ("[[:punct:]]+", "a$+!¡1", ["a", "$+!¡", "1"]),
    ("[a||b~~c]+", "a|b~c|", ["a|b~c|"]),
    ("[^\\n&&\\S]+", "a b\nc", ["a b\nc"]),
    ("a{,2}", "aaaa", ["aa", "aa"]),
    ("a{x}|{1", "a{x}{1", ["a{x}", "{1"]),
    ("a++a|.", "aaa", ["a", "a", "a"]),
    ("(?>a{1,3})b|.", "aaab", ["aaab"]),
    ("(a|b)\\1", "aab bb", ["aa", "b ", "bb"]),
    ("(?x) a b # c", "ab a b", ["ab", " a b"]),
    ("\\h+|\\H", "ff gg", ["ff", " ", "g", "g"]),
    ("'(?i:[sdmt]|ll|ve|re)|\\p{L}+", "it's I'LL", ["it", "'s", " ", "I", "'LL"]),
    ("(?<!a|bc)d", "bcd d", ["bcd ", "d"]),
    ("\\p{^L}+", "a12b", ["a", "12", "b"]),
]
# Parts of patterns; some match nothing.
PARTS = [
    r"(?=\p{Lu})",
    r"(?<=\s)",
    r"(?!\S)",
    r"\b",
    r"\B",
    "^",
    "$",
    r"\z",
    r"\s*",
    r"\s+",
    r"\p{L}+?",
    r"\p{N}{1,3}+",
    "(?i:k|'s)",
    r"[^\s\p{L}]??",
    "a{2}?",
    r"(?>\w*)",
    r"(\w)\W",
    "",
]
patterns = st.lists(
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map("".join),
    min_size=1,
    max_size=3,
).map("|".join)
texts = st.text(st.sampled_from("aaBk K12'\n\r é中½İ\u0301\u2028"), max_size=12) | st.text(
    max_size=8
)


@pytest.mark.parametrize(("pattern", "text", "pieces"), CUTS)
def test_a_text_is_cut_as_huggingface_cuts_it(
    pattern: str, text: str, pieces: list[str], tmp_path: Path
):
    loaded = load_huggingface(written(cut_by(pattern), tmp_path))
    assert loaded.split(text) == pieces
    assert loaded.decode(loaded.encode(text)) == text


@given(pattern=patterns, text=texts)
@example(pattern=r"(?=\p{Lu})", text="fooBar")
@example(pattern=r"\b", text="foo Bar")
def test_no_text_is_lost(pattern: str, text: str, tmp_path_factory):
    path = written(cut_by(pattern), tmp_path_factory.mktemp("cut"))
    loaded = load_huggingface(path)
    tokens, starts = loaded.encode_with_offsets(text, unit="byte")
    assert loaded.decode(tokens) == text
    assert "".join(loaded.split(text)) == text
    assert starts == [
        sum(map(len, loaded.decode_tokens_bytes(tokens)[:at])) for at in range(len(tokens))
    ]
    save_huggingface(loaded, path)
    for copy in (load_huggingface(path), pickle.loads(pickle.dumps(loaded))):
        assert copy.split(text) == loaded.split(text)


@pytest.mark.parametrize(
    ("pattern", "construct"),
    [
        (r"a\Kb", r"\K"),
        (r"a\X", r"\X"),
        (r"\pL", r"\pL"),
        (r"\p{Script=Greek}", r"\p{Script=Greek}"),
        ("(?i)gross", "'gross'"),
        ("(?i:[a-zß])", "[a-zß]"),
        ("(?i)[[^[:lower:]]]", "[[^[:lower:]]]"),
        ("(?s)a.b", "(?s)"),
        ("(?a)b", "(?a)"),
        ("(?~abc)", "(?~a"),
        ("a**", "a**"),
        (r"\u{61}", r"\u"),
        ("(?=a)+", "(?=a)+"),
        (r"(?i)(a)\1", r"\1"),
        ("a{3,1}", "{3,1}"),
        ("(a", "("),
        ("a)", ")"),
        ("[[:graph:]]", "[:graph:]"),
    ],
)
def test_a_construct_that_is_not_known_is_refused_by_name(
    pattern: str, construct: str, tmp_path: Path
):
    path = written(cut_by(pattern), tmp_path)
    with pytest.raises(ArgumentError) as refusal:
        load_huggingface(path)
    assert str(path) in str(refusal.value)
    assert construct.replace("\\", "\\\\") in str(refusal.value)


def test_cl100k_as_tiktoken_writes_it_is_not_cl100k_to_huggingface(tmp_path: Path):
    """`{1,3}+` is possessive to tiktoken only; tokenizers 0.23.3 gives these pieces."""
    loaded = load_huggingface(written(cut_by(CL100K), tmp_path))
    assert loaded.split("it's 12345\n") == ["it", "'s", " ", "12345", "\n"]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"\p{N}{1,3}+|\P{N}", "12345a"),
        (r"a+$|^b|[\s\S]", "aa\nb\naa"),
        (r"(?i)k+|(?s).", "kKK\ni"),
        (r"\w+|\b|\W", "a½b"),
        (r"[\w--\d]+|[a-f~~c-z]|(?m)^.|[\s\S]", "ab12cz\n-"),
        (r"\<a{2}?|a\>|\N{1,3}|\n", "aaaa\naa a"),
    ],
)
def test_patterns_of_tiktoken_mean_the_same_once_they_are_written(
    pattern: str, text: str, tmp_path: Path
):
    settings = {"mergeable_ranks": BYTES, "special_tokens": {}}
    encoding = Encoding("x", pat_str=pattern, **settings)
    save_huggingface(encoding, tmp_path / "tokenizer.json")
    assert load_huggingface(tmp_path / "tokenizer.json").split(text) == encoding.split(text)


def test_a_pattern_that_huggingface_cannot_read_is_not_written(tmp_path: Path):
    settings = {"mergeable_ranks": BYTES, "special_tokens": {}}
    encoding = Encoding("x", pat_str=r"(?<n>a)\k<n>|.", **settings)
    with pytest.raises(ArgumentError, match="cannot be written"):
        save_huggingface(encoding, tmp_path / "tokenizer.json")
    assert not (tmp_path / "tokenizer.json").exists()
