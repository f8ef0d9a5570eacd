"""The same tokens as tiktoken, on any input."""

from functools import cache

import pytest
import tiktoken
from hypothesis import given, settings, strategies as st

from hotgrid.tokens import DEFAULT_ENCODING, Encoding, get_encoding, list_encoding_names

from .test_lexer_proof import CELLS, MORE

NAMES = [name for name in list_encoding_names() if name != DEFAULT_ENCODING]
FAMILIES = ["gpt2", "cl100k_base", "o200k_base"]
WORDS = [
    "Hello",
    " world",
    "don't",
    "I'LL",
    "12345",
    "\n\n  ",
    "naïve",
    " 日本語",
    "HTTPServer's",
]

pieces = st.sampled_from([*CELLS, *MORE, *WORDS, " " * 40, "a" * 70, "=" * 20])
texts = st.one_of(st.text(), st.lists(pieces, max_size=60).map("".join))
surrogates = st.text(alphabet=st.characters(), max_size=20)


@cache
def both(name: str):
    return get_encoding(name), tiktoken.get_encoding(name)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_known_about_an_encoding(name: str):
    ours, theirs = both(name)
    assert ours.name == theirs.name
    assert ours.n_vocab == theirs.n_vocab
    assert ours.max_token_value == theirs.max_token_value
    assert ours.eot_token == theirs.eot_token
    assert ours.special_tokens_set == theirs.special_tokens_set
    assert ours._special_tokens == theirs._special_tokens
    assert ours._pat_str == theirs._pat_str
    assert ours._mergeable_ranks == theirs._mergeable_ranks
    assert ours.token_byte_values() == theirs.token_byte_values()
    assert repr(ours) == repr(theirs)


def test_the_names_and_models_are_the_same():
    assert tiktoken.list_encoding_names()[: len(NAMES)] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_token_comes_back(name: str):
    ours, theirs = both(name)
    for token in range(ours.n_vocab):
        try:
            expected = theirs.decode_single_token_bytes(token)
        except KeyError:
            with pytest.raises(KeyError):
                ours.decode_single_token_bytes(token)
            continue
        assert ours.decode_single_token_bytes(token) == expected


@pytest.mark.parametrize("name", FAMILIES)
def test_tokens_as_texts(name: str):
    """Also those that merging never reaches."""
    ours, theirs = both(name)
    texts = []
    for token in ours.token_byte_values()[::7]:
        try:
            texts.append(token.decode())
        except UnicodeDecodeError:
            assert ours._encode_bytes(token) == theirs._encode_bytes(token)
    expected = theirs.encode_ordinary_batch(texts, num_threads=1)
    assert ours.encode_ordinary_batch(texts) == expected


@pytest.mark.parametrize("name", FAMILIES)
@given(text=texts)
def test_any_text(name: str, text: str):
    ours, theirs = both(name)
    tokens = theirs.encode_ordinary(text)
    assert ours.encode_ordinary(text) == tokens
    assert ours.encode_to_numpy(text, disallowed_special=()).tolist() == tokens
    assert ours._encode_only_native_bpe(text) == tokens
    assert ours.count(text, disallowed_special=()) == len(tokens)
    assert ours.decode(tokens) == text
    assert ours.decode_with_offsets(tokens) == theirs.decode_with_offsets(tokens)


@pytest.mark.parametrize("name", FAMILIES)
@given(
    text=st.text(alphabet=st.characters(codec=None, categories=["L", "Cs", "P"]), max_size=20)
)
def test_lone_surrogates(name: str, text: str):
    ours, theirs = both(name)
    assert ours.encode_ordinary(text) == theirs.encode_ordinary(text)
    assert ours.encode(text) == theirs.encode(text)
    assert ours.encode_batch([text]) == theirs.encode_batch([text])


@pytest.mark.parametrize("name", FAMILIES)
@given(
    data=st.one_of(st.binary(max_size=40), texts.map(str.encode)), tail=st.binary(max_size=4)
)
def test_any_bytes(name: str, data: bytes, tail: bytes):
    ours, theirs = both(name)
    assert ours._encode_bytes(data + tail) == theirs._encode_bytes(data + tail)
    if data:
        assert ours._encode_single_piece(data) == theirs._encode_single_piece(data)


SPECIALS = [
    "<|endoftext|>",
    "<|fim_prefix|>",
    "<|endofprompt|>",
    "<|start|>",
    "<|en",
    "|>",
    "<|",
]


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_special_tokens(name: str, data: st.DataObject):
    ours, theirs = both(name)
    text = "".join(data.draw(st.lists(st.sampled_from([*SPECIALS, *WORDS, " "]), max_size=8)))
    allowed = data.draw(st.one_of(st.just("all"), st.sets(st.sampled_from(SPECIALS))))
    disallowed = data.draw(
        st.one_of(st.just("all"), st.just(()), st.sets(st.sampled_from(SPECIALS)))
    )
    rules = {"allowed_special": allowed, "disallowed_special": disallowed}
    try:
        expected = theirs.encode(text, **rules)
    except ValueError:
        for encode in (
            ours.encode,
            ours.encode_to_numpy,
            ours.count,
            ours.encode_with_unstable,
        ):
            with pytest.raises(ValueError, match="special token"):
                encode(text, **rules)
        with pytest.raises(ValueError, match="special token"):
            ours.encode_batch([text], **rules)
        return
    assert ours.encode(text, **rules) == expected
    assert ours.encode_to_numpy(text, **rules).tolist() == expected
    assert ours.encode_batch(["", text], **rules) == [[], expected]
    assert ours.count(text, **rules) == len(expected)


@pytest.mark.parametrize(
    # tiktoken takes seconds for the largest vocabulary.
    "name",
    [pytest.param(n, marks=[pytest.mark.long] * (n == "o200k_base")) for n in FAMILIES],
)
@settings(max_examples=25)
@given(text=st.lists(pieces, max_size=4).map("".join).filter(lambda text: len(text) < 30))
def test_unstable_tokens(name: str, text: str):
    ours, theirs = both(name)
    stable, completions = ours.encode_with_unstable(text)
    expected, expected_completions = theirs.encode_with_unstable(text)
    assert stable == expected
    assert sorted(completions) == sorted(expected_completions)


@pytest.mark.parametrize("text", ["a   ", "a  \n ", "a   \n\t", "  ", " \n", "  b", "\t \t\n"])
def test_special_tokens_of_blanks_stay_special(text: str):
    ranks = {bytes([value]): value for value in range(256)} | {b"\t ": 260}
    specials = {"  ": 256, "\n": 257, "\t\t": 9}  # one shares the number of a token
    settings = {"pat_str": r"\w+|\s+|\S", "mergeable_ranks": ranks, "special_tokens": specials}
    ours, theirs = Encoding("x", **settings), tiktoken.Encoding("x", **settings)
    stable, completions = ours.encode_with_unstable(text, allowed_special="all")
    expected = theirs.encode_with_unstable(text, allowed_special="all")
    assert (stable, sorted(completions)) == (expected[0], sorted(expected[1]))


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(
    "unit", ["a", " ", "^", "中", "ab", "\n", "\n ", "0", "é", "\u0301", "aB"]
)
def test_long_runs(name: str, unit: str):
    ours, theirs = both(name)
    for count in (63, 64, 65, 255, 256, 257, 5000):
        text = unit * count
        assert ours.encode_ordinary(text) == theirs.encode_ordinary(text)
        assert ours.encode_ordinary(f"x{text} y") == theirs.encode_ordinary(f"x{text} y")


def test_a_million_spaces():
    """tiktoken ends here with an overflow of its stack; the answer is that of the piece."""
    ours, theirs = both("o200k_base")
    spaces = " " * 1_000_000
    assert ours.encode(spaces) == theirs._encode_single_piece(spaces)
    assert ours.count(spaces) == 7813


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("size", [15, 16, 17, 64, 65, 511, 512, 513, 3000])
def test_pieces_of_sizes_where_something_changes(name: str, size: int):
    ours, theirs = both(name)
    for unit in ("qzjx", "the", "日本"):
        piece = (unit * size)[:size]
        for _ in range(2):  # the second time from the cache
            assert ours.encode_ordinary(piece) == theirs.encode_ordinary(piece)
