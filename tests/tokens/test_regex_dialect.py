"""Patterns without a lexer mean what they mean to tiktoken, sign by sign."""

import pytest
import tiktoken

from hotgrid.errors import ArgumentError
from hotgrid.tokens import Encoding

WORDS = [
    "aa",
    "aaa",
    "ab",
    "ff",
    "  ",
    "ss",
    "ß",
    "é",
    "ſ",
    "中",
    "--",
    "[a",
    "ab]",
    "12",
    "kk",
]
RANKS = {bytes([i]): i for i in range(256)} | {
    word.encode(): 256 + i for i, word in enumerate([*WORDS, "\n\n", "a\n", "\r\n", "AB"])
}
ANYTHING = r"|[\s\S]"
PATTERNS = {
    r"a+$|a": ["aaa\n", "aaa", "aaa\n\n"],
    r"(?m)^a+$": ["aa\naaa", "aa\r\naa"],
    r"a+\Z|a": ["aaa\n", "aaa", "aaa\n\n"],
    r"a+\z|a": ["aaa\n", "aaa"],
    r"\h+": ["ff  ff"],
    r"[\h]+": ["ff  "],
    r"\H+": ["ff  "],
    r"\e": ["\x1b"],
    r"\N+": ["aa\n"],
    r"\O+": ["aa\n"],
    r"\x{61}+": ["aaa"],
    r"[\x{61}-\u{62}]+": ["aab"],
    r"(?<n>a)\k<n>": ["aa"],
    r"\pL+": ["aaé1"],
    r"\PL+": ["aa  1"],
    r"[a-z&&[^b]]+": ["aabab", "&&"],
    r"[[ab]]+": ["aab", "[a", "ab]"],
    r"[a||b]+": ["ab||"],
    r"[a~~b]+": ["ab~"],
    r"[a-c--b]+": ["ab-"],
    r"[\w--\d]+": ["ab12--"],
    r"[^[a]b]+": ["12ab"],
    r"[]a]+": ["a]a"],
    r"[^]a]+": ["b]a"],
    r"[[:alpha:]]+": ["aé1", "aaa"],
    r"[^[:alpha:]]+": ["aé1", "12"],
    r"[[:^digit:]]+": ["a12"],
    r"[[:punct:]]+": ["a[]--~1"],
    r" ?[^(\s|[.,!?…])]+": ["ab, (aa) ab"],
    r"(?i)ss": ["ß", "ss", "SS", "ſſ"],
    r"(?i)k+": ["kK", "Kk"],
    r"(?i:ß)+": ["ßẞ", "ss"],
    r"(?i)[^a]+": ["ABAB"],
    r"\N{1,3}": ["aaaa\naa"],
    r"\<a+": ["aa[aa baa"],
    r"a+\>": ["aa[aab"],
    r"(?i)i+": ["iIİı"],
    r"(?i)[a-z]+": ["aaİıiI", "ſkK"],
    r"(?i)\p{Greek}+": ["µμΩΩa"],
    r"(?i)\P{Greek}+": ["aaµμ"],
    r"(?i)\p{Lu}+": ["aAé1ß"],
    r"(?i:[^\p{Lu}])+": ["aA12é"],
    r"(?i)İ+|ı+": ["iIİı"],
    r"(?i)ﬅ+": ["ﬅﬆst"],
    r"a(?i)b|ab": ["aBAB"],
    r"(?x) a + # b": ["aa b"],
    r"(?x)[a b]+": ["a ab"],
    r"[^\s\S]": ["aa"],
    r"\w+": ["a\u200dé½Ⅷ"],
    r"\ba+\b": ["aa aab"],
    r"a{2}?": ["aaa"],
    r"[\p{Lu}\p{Lo}&&[^\p{Han}]]*[\p{Ll}\p{Lo}&&[^\p{Han}]]+": ["Hello中 world"],
}


def whole(text: str) -> dict[bytes, int]:
    """Ranks in which every part of a text is a token, so that tokens are pieces."""
    data = text.encode()
    ends = range(len(data) + 1)
    parts = {data[at:end] for end in ends for at in range(end)} | set(RANKS)
    return {part: rank for rank, part in enumerate(sorted(parts))}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_cuts_as_tiktoken_cuts(pattern: str):
    for text in PATTERNS[pattern]:
        settings = {
            "pat_str": pattern + ANYTHING,
            "mergeable_ranks": whole(text),
            "special_tokens": {},
        }
        theirs, ours = tiktoken.Encoding("x", **settings), Encoding("x", **settings)
        assert ours.encode(text) == theirs.encode(text), text
        assert ours.split(text) == [theirs.decode([token]) for token in theirs.encode(text)]


@pytest.mark.parametrize("pattern", [r"(?R)", r"(a(?1)?)", r"(?P<n>a)(?&n)", "[a", "(a"])
def test_what_tiktokens_engine_does_not_know_is_refused(pattern: str):
    with pytest.raises(ArgumentError, match="is not a pattern"):
        Encoding("x", pat_str=pattern, mergeable_ranks=RANKS, special_tokens={}).encode("aa")


@pytest.mark.parametrize(
    ("pattern", "text"), [("a*", "baac"), ("|a", "aa"), (r"a*?", "aa"), (r"\b|.", "ab ab")]
)
def test_a_match_of_nothing_is_refused_where_tiktoken_crashes(pattern: str, text: str):
    encoding = Encoding("x", pat_str=pattern, mergeable_ranks=RANKS, special_tokens={})
    with pytest.raises(ArgumentError, match="matches the empty text at character 0"):
        encoding.encode(text)
    assert encoding.encode("") == []


def test_a_match_of_nothing_behind_a_match_does_not_count():
    settings = {"pat_str": r"a*", "mergeable_ranks": RANKS, "special_tokens": {}}
    theirs, ours = tiktoken.Encoding("x", **settings), Encoding("x", **settings)
    assert ours.encode("aa") == theirs.encode("aa") == [256]


def test_a_pattern_that_takes_exponential_time_is_refused(monkeypatch: pytest.MonkeyPatch):
    """The time doubles with every letter: without a bound this would never end."""
    monkeypatch.setattr("hotgrid.tokens._patterns._patterns._SECONDS", 0.05)
    encoding = Encoding("x", pat_str="(?:a|a)*b|.", mergeable_ranks=RANKS, special_tokens={})
    assert encoding.encode("ab") == [258]
    with pytest.raises(ArgumentError, match=r"takes too long .* at character 1 "):
        encoding.encode("b" + "a" * 80 + "c")


def test_a_bound_on_time_counts_this_thread_only(monkeypatch: pytest.MonkeyPatch):
    """The `regex` library counts what other threads do, too, so its word is not final."""
    monkeypatch.setattr("hotgrid.tokens._patterns._patterns.time.thread_time", lambda: 0.0)
    monkeypatch.setattr("hotgrid.tokens._patterns._patterns._SECONDS", 1e-9)
    monkeypatch.setattr("hotgrid.tokens._patterns._patterns._SECONDS_EACH", 0.0)
    encoding = Encoding("x", pat_str="(?:a|a)*b|.", mergeable_ranks=RANKS, special_tokens={})
    text = "a" * 12 + "c"
    assert encoding.decode(encoding.encode(text)) == text
