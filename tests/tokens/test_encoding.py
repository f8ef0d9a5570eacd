"""The interface: same results and same exceptions as tiktoken, and additions."""

import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import tiktoken
from hypothesis import given, strategies as st

from hotgrid.errors import ArgumentError, HotgridError
from hotgrid.tokens import (
    Encoding,
    encoding_for_model,
    encoding_name_for_model,
    get_encoding,
    list_encoding_names,
)
from hotgrid.tokens._models import MODELS, PREFIXES
from hotgrid.tokens._patterns import PATTERNS

from .test_equality import both

BYTES = {bytes([value]): value for value in range(256)}
END = "<|endoftext|>"


class Otherwise(str):
    """A text with an `encode` of its own."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        return "zz".encode(encoding, errors)


CALLS = {
    "encode None": lambda e: e.encode(None),
    "encode bytes": lambda e: e.encode(b"a"),
    "encode int": lambda e: e.encode_ordinary(5),
    "encode list": lambda e: e.encode_ordinary(["a"]),
    "allowed is a list": lambda e: e.encode(END, allowed_special=[END]),
    "allowed is another str": lambda e: e.encode("a", allowed_special="none"),
    "allowed is None": lambda e: e.encode("a", allowed_special=None),
    "allowed is an empty list": lambda e: e.encode("a", allowed_special=[]),
    "allowed is None for a count": lambda e: len(e.encode_batch(["a"], allowed_special=None)),
    "allowed is frozen": lambda e: e.encode(f"a{END}", allowed_special=frozenset([END])),
    "disallowed is a str": lambda e: e.encode("hello", disallowed_special="l"),
    "disallowed is any string": lambda e: e.encode("hello", disallowed_special={"ell"}),
    "disallowed is the empty string": lambda e: e.encode("hello", disallowed_special={""}),
    "disallowed wins": lambda e: e.encode(END, allowed_special="all", disallowed_special={END}),
    "disallowed is None": lambda e: e.encode(END, disallowed_special=None),
    "disallowed is not a str": lambda e: e.encode(END, disallowed_special=""),
    "disallowed is a str not there": lambda e: e.encode("hello", disallowed_special="x"),
    "disallowed is a number": lambda e: e.encode("hello", disallowed_special=5),
    "disallowed is a surrogate": lambda e: e.encode("hello", disallowed_special={"\ud800"}),
    "disallowed surrogate": lambda e: e.encode("a\ud800", disallowed_special={"\ud800"}),
    "disallowed behind surrogate": lambda e: e.encode(
        "\ud801hello", disallowed_special={"\ud800", "ell"}
    ),
    "numpy disallowed None": lambda e: e.encode_to_numpy(END, disallowed_special=None).tolist(),
    "unstable disallowed None": lambda e: e.encode_with_unstable(END, disallowed_special=None)[
        0
    ],
    "numpy surrogate": lambda e: e.encode_to_numpy("\ud800"),
    "numpy surrogate and special": lambda e: e.encode_to_numpy(f"\ud800{END}"),
    "unstable surrogate and special": lambda e: e.encode_with_unstable(f"\ud800{END}"),
    "surrogate and special": lambda e: e.encode(f"\ud800{END}"),
    "batch of a surrogate and a special": lambda e: e.encode_batch(["\ud800", END]),
    "a text that encodes otherwise": lambda e: e.encode(Otherwise("é中")),
    "surrogate that encodes otherwise": lambda e: e.encode(Otherwise("é\ud800")),
    "special that encodes otherwise": lambda e: e.encode(Otherwise(f"é\ud800{END}")),
    "batch that encodes otherwise": lambda e: e.encode_batch([Otherwise(f"é\ud800{END}")]),
    "numpy None": lambda e: e.encode_to_numpy(None),
    "numpy is read-only": lambda e: e.encode_to_numpy("hi").flags.writeable,
    "numpy of nothing": lambda e: (
        e.encode_to_numpy("").dtype.name,
        e.encode_to_numpy("").shape,
    ),
    "unstable surrogate": lambda e: e.encode_with_unstable("\ud800"),
    "unstable nothing": lambda e: e.encode_with_unstable(""),
    "unstable special": lambda e: e.encode_with_unstable(f"a{END}", allowed_special="all"),
    "unstable behind special": lambda e: e.encode_with_unstable(
        f"{END}Zq\x01", allowed_special="all"
    )[0],
    "batch of a str": lambda e: e.encode_batch("ab"),
    "batch of a generator": lambda e: e.encode_batch(text for text in ("a", "b")),
    "batch of None": lambda e: e.encode_batch([None]),
    "batch without threads": lambda e: e.encode_batch(["a"], num_threads=0),
    "batch of any threads": lambda e: e.encode_batch(["a", "b"], num_threads=None),
    "ordinary of any threads": lambda e: e.encode_ordinary_batch(["a"], num_threads=None),
    "batch of endless threads": lambda e: e.encode_batch(["a"], num_threads=10**30),
    "batch of 2.0 threads": lambda e: e.encode_batch(["a", "b"], num_threads=2.0),
    "batch of half a thread": lambda e: e.encode_batch(["a"], num_threads=0.5),
    "batch of a fraction": lambda e: e.encode_batch(["a"], num_threads=Fraction(5, 2)),
    "batch of a scalar of threads": lambda e: e.encode_batch(["a"], num_threads=np.int64(2)),
    "batch of infinite threads": lambda e: e.encode_batch(["a"], num_threads=float("inf")),
    "batch of -0.5 threads": lambda e: e.encode_batch(["a"], num_threads=-0.5),
    "batch of threads as a str": lambda e: e.encode_batch(["a"], num_threads="2"),
    "batch of complex threads": lambda e: e.encode_batch(["a"], num_threads=2j),
    "decode batch of 2.0 threads": lambda e: e.decode_batch([[1]], num_threads=2.0),
    "batch disallowed surrogate": lambda e: e.encode_batch(
        ["a", "\ud800"], disallowed_special={"\ud800"}
    ),
    "batch of bytes": lambda e: e.encode_ordinary_batch([b"a"]),
    "batch of surrogates": lambda e: e.encode_batch(["a", "\ud800", "\ud83d\udc4d"]),
    "batch of nothing": lambda e: e.encode_batch([]),
    "batch disallowed": lambda e: e.encode_batch(["a", END]),
    "single token": lambda e: e.encode_single_token("hello"),
    "single bytes": lambda e: e.encode_single_token(b"\xff"),
    "single special": lambda e: e.encode_single_token(END),
    "single of two": lambda e: e.encode_single_token("hello there"),
    "single empty": lambda e: e.encode_single_token(""),
    "single int": lambda e: e.encode_single_token(5),
    "single bytearray": lambda e: e.encode_single_token(bytearray(b"a")),
    "single surrogate": lambda e: e.encode_single_token("\ud800"),
    "piece": lambda e: e._encode_single_piece("helloqqqq"),
    "decode float": lambda e: e.decode([1.5]),
    "decode negative": lambda e: e.decode([-1]),
    "decode 2**32": lambda e: e.decode([2**32]),
    "decode 2**70": lambda e: e.decode([2**70]),
    "decode a hole": lambda e: e.decode([100256]),
    "decode beyond": lambda e: e.decode([4_000_000_000]),
    "decode str": lambda e: e.decode("abc"),
    "decode bytes": lambda e: e.decode(b"ab"),
    "decode set": lambda e: e.decode({1, 2}),
    "decode dict": lambda e: e.decode({1: 2}),
    "decode iterator": lambda e: e.decode(iter([1])),
    "decode None": lambda e: e.decode(None),
    "decode [None]": lambda e: e.decode([None]),
    "decode nested": lambda e: e.decode([[1]]),
    "decode tuple": lambda e: e.decode((1, 2)),
    "decode bool": lambda e: e.decode([True]),
    "decode range": lambda e: e.decode(range(3)),
    "decode int64": lambda e: e.decode(np.array([9906, 1917])),
    "decode uint32": lambda e: e.decode(np.array([9906, 1917], dtype=np.uint32)),
    "decode int8": lambda e: e.decode(np.array([99, 17], dtype=np.int8)),
    "decode every other": lambda e: e.decode(np.arange(20)[::2]),
    "decode negative array": lambda e: e.decode(np.array([-1])),
    "decode huge array": lambda e: e.decode(np.array([2**40])),
    "decode float array": lambda e: e.decode(np.array([1.5])),
    "decode a scalar": lambda e: e.decode([np.int64(5)]),
    "decode half a character": lambda e: e.decode([160]),
    "decode strictly": lambda e: e.decode([160], errors="strict"),
    "decode nothing": lambda e: (e.decode([]), e.decode_bytes([])),
    "decode one negative": lambda e: e.decode_single_token_bytes(-1),
    "decode one hole": lambda e: e.decode_single_token_bytes(100256),
    "decode one float": lambda e: e.decode_single_token_bytes(1.0),
    "decode one str": lambda e: e.decode_single_token_bytes("a"),
    "decode each of a hole": lambda e: e.decode_tokens_bytes([100256]),
    "decode each of an iterator": lambda e: e.decode_tokens_bytes(iter([1, 2])),
    "decode each of an array": lambda e: e.decode_tokens_bytes(np.array([1, 2])),
    "offsets of nothing": lambda e: e.decode_with_offsets([]),
    "offsets of half a character": lambda e: e.decode_with_offsets([160]),
    "decode batch": lambda e: e.decode_batch([[1], [2, 3], []]),
    "decode batch of a hole": lambda e: e.decode_batch([[100256]]),
    "decode bytes batch": lambda e: e.decode_bytes_batch(((1,), (2, 3))),
    "decode batch without threads": lambda e: e.decode_batch([[1]], num_threads=0),
    "decode batch of any threads": lambda e: e.decode_batch([[1]], num_threads=None),
    "bytes batch of any threads": lambda e: e.decode_bytes_batch([[1]], num_threads=None),
    "offsets of a generator": lambda e: e.decode_with_offsets(token for token in (1, 2)),
    "offsets of a set": lambda e: e.decode_with_offsets({5}),
    "offsets of a dict": lambda e: e.decode_with_offsets({5: 6}),
    "offsets of an empty str": lambda e: e.decode_with_offsets(""),
    "offsets of a str": lambda e: e.decode_with_offsets("a"),
    "offsets of None": lambda e: e.decode_with_offsets(None),
    "bytes that are a str": lambda e: e._encode_bytes("str"),
    "native surrogate": lambda e: e._encode_only_native_bpe("a\ud800"),
    "is special": lambda e: (e.is_special_token(100257), e.is_special_token(1)),
    "is special str": lambda e: e.is_special_token("a"),
}


def outcome(call, encoding):
    try:
        return call(encoding)
    except Exception as problem:  # noqa: BLE001
        return problem


@pytest.mark.parametrize("name", CALLS)
def test_answers_and_exceptions_are_those_of_tiktoken(name: str):
    ours, theirs = (outcome(CALLS[name], encoding) for encoding in both("cl100k_base"))
    if isinstance(theirs, Exception):
        assert isinstance(ours, type(theirs)), ours
        # Which is a ValueError as well, and not what a special token is refused by.
        assert isinstance(ours, UnicodeError) == isinstance(theirs, UnicodeError)
        if isinstance(theirs, KeyError):
            assert str(ours) == str(theirs)
    else:
        assert ours == theirs


@pytest.mark.parametrize("threads", ["2", 2j, [2], np.array([2, 3])])
def test_threads_that_are_no_number(threads):
    encoding, _ = both("cl100k_base")
    for call in (encoding.encode_batch, encoding.encode_flat):
        with pytest.raises(TypeError, match="`num_threads` must be a number or None, got"):
            call(["a"], num_threads=threads)
    with pytest.raises(TypeError, match="`num_threads`"):
        encoding.decode_batch([[1]], num_threads=threads)


def test_threads_that_are_too_few():
    encoding, _ = both("cl100k_base")
    for threads in (0, -2.5, float("nan"), False):
        with pytest.raises(ArgumentError, match="`num_threads` must be at least 1, got"):
            encoding.encode_batch(["a"], num_threads=threads)


def test_no_tokens_are_reported_to_be_none():
    encoding, _ = both("cl100k_base")
    for call in (encoding.decode, encoding.decode_bytes):
        with pytest.raises(TypeError, match="expected a sequence of tokens, got NoneType"):
            call(None)


def test_the_two_names_of_a_token_of_harmony():
    ours, theirs = both("o200k_harmony")
    assert ours.decode([200018]) == theirs.decode([200018]) == "<|endofprompt|>"


def test_special_tokens_that_are_refused_show_the_ways_out():
    encoding, _ = both("cl100k_base")
    with pytest.raises(ArgumentError) as refusal:
        encoding.encode(f"a{END}")
    text = str(refusal.value)
    for words in (
        repr(END),
        "allowed_special={",
        "special_tokens_set - {",
        "disallowed_special=()",
    ):
        assert words in text


def test_of_several_special_tokens_at_one_place_the_longest_counts():
    encoding = Encoding(
        "x",
        pat_str=".",
        mergeable_ranks=BYTES,
        special_tokens={"<a": 300, "<a>": 301, "é": 302},
    )
    assert encoding.encode("<a>é", allowed_special="all") == [301, 302]
    assert encoding.encode("<a>", allowed_special={"<a"}, disallowed_special=()) == [
        300,
        ord(">"),
    ]


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"mergeable_ranks": {}}, ValueError, "is empty"),
        ({"mergeable_ranks": {b"a": 0, b"b": 0}}, HotgridError, "two tokens have the rank 0"),
        ({"mergeable_ranks": {b"a": 0, b"": 1}}, HotgridError, "token 1 is empty"),
        ({"mergeable_ranks": {b"a": -1}}, OverflowError, "range"),
        ({"mergeable_ranks": {b"a": 2**32 - 1}}, HotgridError, "4294967295"),
        ({"mergeable_ranks": {b"a": 2**32}}, OverflowError, "b'a' must be in the range"),
        ({"mergeable_ranks": {b"a": 0, b"b": 1.0}}, TypeError, "b'b' must be an int, got 1.0"),
        ({"special_tokens": {"<s>": -1}}, OverflowError, "'<s>' must be in the range"),
        ({"special_tokens": {"<s>": 2**32}}, OverflowError, "'<s>' must be in the range"),
        ({"special_tokens": {"<s>": 2**32 - 1}}, ArgumentError, "got 4294967295"),
        ({"special_tokens": {"<s>": 1.5}}, TypeError, "'<s>' must be an int, got 1.5"),
        ({"special_tokens": {"\ud800": 300}}, ArgumentError, "`special_tokens`: .*surrogate"),
        ({"special_tokens": {b"<s>": 300}}, TypeError, "b'<s>' must be a str"),
        ({"pat_str": b"."}, TypeError, r"expression as str.* got b'\.'"),
        ({"pat_str": None}, TypeError, "expression as str.* got None"),
        ({"pat_str": "("}, ValueError, "is not a pattern"),
        ({"pat_str": "(" * 9000 + ")" * 9000}, ArgumentError, r"^`pat_str` '\({500}'\.\.\. is"),
        ({"pat_str": "cl100"}, ArgumentError, "did you mean `cl100k`.* write \\(\\?:cl100\\)"),
        (
            {"pat_str": "GPT-2"},
            ArgumentError,
            "there is no pattern `GPT-2`; did you mean `gpt2`",
        ),
        ({"explicit_n_vocab": 3}, AssertionError, "256 tokens"),
    ],
)
def test_what_cannot_be_an_encoding(settings: dict, error: type, words: str):
    given = {"pat_str": ".", "mergeable_ranks": BYTES, "special_tokens": {}} | settings
    with pytest.raises(error, match=words):
        Encoding("x", **given)


def test_a_word_that_is_no_name_is_a_pattern():
    encoding = Encoding("x", pat_str="word", mergeable_ranks=BYTES, special_tokens={})
    assert encoding.encode("a word") == list(b"word")


def test_an_explicit_count_that_is_right():
    encoding = Encoding(
        "x",
        pat_str=".",
        mergeable_ranks=BYTES,
        special_tokens={"<e>": 256},
        explicit_n_vocab=257,
    )
    assert encoding.n_vocab == 257


def test_a_byte_that_is_no_token_is_named():
    encoding = Encoding("x", pat_str=".+", mergeable_ranks={b"a": 0}, special_tokens={})
    assert encoding.encode("aa") == [0, 0]
    with pytest.raises(ArgumentError, match="byte 0x62"):
        encoding.encode("ab")


def test_text_that_the_pattern_leaves_out_is_left_out():
    ranks = {b"a": 0, b"b": 1}
    ours = Encoding("x", pat_str="b", mergeable_ranks=ranks, special_tokens={})
    theirs = tiktoken.Encoding("x", pat_str="b", mergeable_ranks=ranks, special_tokens={})
    assert ours.encode("aba") == theirs.encode("aba") == [1]


def test_copies_by_name_and_by_value():
    known = get_encoding("cl100k_base")
    by_name = pickle.loads(pickle.dumps(known))
    assert len(pickle.dumps(known)) < 200
    assert by_name.encode("Hello world") == known.encode("Hello world")
    own = Encoding("x", pat_str=r"\w+|\W", mergeable_ranks=BYTES, special_tokens={"<e>": 256})
    by_value = pickle.loads(pickle.dumps(own))
    assert by_value.encode("hé <e>", allowed_special="all") == own.encode(
        "hé <e>", allowed_special="all"
    )
    assert repr(by_value) == "<Encoding 'x'>"


def test_models():
    for name in (*MODELS, *(prefix + "x" for prefix, _ in PREFIXES)):
        assert encoding_name_for_model(name) == tiktoken.encoding_name_for_model(name)
    assert encoding_for_model("gpt-4o") is get_encoding("o200k_base")
    with pytest.raises(KeyError, match="Did you mean 'gpt-4o'"):
        encoding_for_model("gtp-4o")


def test_names():
    assert list_encoding_names()[-1] == "o200k_harmony"
    with pytest.raises(ValueError, match="did you mean `o200k_base`"):
        get_encoding("o200k_bas")
    with pytest.raises(ValueError, match="must be a str, got 3"):
        get_encoding(3)
    assert get_encoding("cl100k_base") is get_encoding("cl100k_base")


def test_offsets():
    encoding, _ = both("cl100k_base")
    text = "héllo 中文👍 <|endoftext|>!"
    tokens, chars = encoding.encode_with_offsets(text, allowed_special="all")
    assert tokens == encoding.encode(text, allowed_special="all")
    assert chars == encoding.decode_with_offsets(tokens)[1]
    _, places = encoding.encode_with_offsets(text, unit="byte", allowed_special="all")
    data = text.encode()
    pieces = [data[a:b] for a, b in zip(places, [*places[1:], len(data)], strict=True)]
    assert pieces == encoding.decode_tokens_bytes(tokens)
    with pytest.raises(ArgumentError, match="`unit` must be 'char' or 'byte', got 'word'"):
        encoding.encode_with_offsets("a", unit="word")


surrogates = st.text(alphabet="ab \ud83d\ude00\ud800\udfffé👍", max_size=12)


@given(text=surrogates, pat_str=st.sampled_from(["cl100k", r"\w+|\W+"]))
def test_offsets_are_those_of_the_text_that_was_given(text: str, pat_str: str):
    encoding = Encoding("x", pat_str=pat_str, mergeable_ranks=BYTES, special_tokens={})
    tokens, places = encoding.encode_with_offsets(text)
    assert tokens == encoding.encode(text)
    # Every token is a byte, so every character begins one, and pairs are one character.
    expected = [
        at
        for at, each in enumerate(text)
        if not ("\udc00" <= each <= "\udfff" and "\ud800" <= text[at - 1 : at] <= "\udbff")
    ]
    assert sorted(set(places)) == expected
    assert encoding.encode_with_offsets("a\ud83d\ude00b")[1] == [0, 1, 1, 1, 1, 3]


@given(
    text=st.lists(st.sampled_from(["a", "b", "é", "👍", "<e>", "\ud83d", "\ude00"])).map(
        "".join
    ),
    pat_str=st.sampled_from(["b", "b+|é", "👍b", "(?<=a)b|.(?=b)", "x"]),
)
def test_offsets_where_the_pattern_leaves_text_out(text: str, pat_str: str):
    encoding = Encoding(
        "x", pat_str=pat_str, mergeable_ranks=BYTES, special_tokens={"<e>": 256}
    )
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    tokens, places = encoding.encode_with_offsets(text, unit="byte", allowed_special="all")
    assert tokens == encoding.encode(text, allowed_special="all")
    assert places == sorted(places)
    for token, place in zip(tokens, places, strict=True):
        expected = encoding.decode_single_token_bytes(token)
        assert whole.encode()[place : place + len(expected)] == expected
    _, characters = encoding.encode_with_offsets(whole, allowed_special="all")
    started = [len(whole.encode()[:place].decode(errors="ignore")) for place in places]
    assert characters == started


def test_offsets_behind_text_left_out():
    encoding = Encoding("x", pat_str="b", mergeable_ranks=BYTES, special_tokens={})
    assert encoding.encode_with_offsets("aba") == ([98], [1])
    assert encoding.encode_with_offsets("é👍b", unit="byte") == ([98], [6])
    assert encoding.encode_with_offsets("\ud83d\ude00b") == ([98], [2])


@pytest.mark.parametrize("pat_str", ["cl100k", r"\w+|\W"])
def test_pieces_of_a_text_with_surrogates(pat_str: str):
    encoding = Encoding("x", pat_str=pat_str, mergeable_ranks=BYTES, special_tokens={})
    assert encoding.split("ab\ud800") == ["ab", "\ufffd"]
    assert encoding.split("ab\ud83d\ude00") == ["ab", "\U0001f600"]
    with pytest.raises(TypeError, match=r"str|bytes"):
        encoding.split(b"ab")


@pytest.mark.parametrize("name", [*PATTERNS, *list_encoding_names()])
def test_a_pattern_may_be_given_by_its_name_or_an_encoding(name: str):
    encoding = Encoding("x", pat_str=name, mergeable_ranks=BYTES, special_tokens={})
    assert encoding.encode("hi!") == list(b"hi!")
    if name in PATTERNS:
        assert encoding._pat_str == PATTERNS[name]
    else:
        assert encoding._pat_str == get_encoding(name)._pat_str
    copy = pickle.loads(pickle.dumps(encoding))
    assert copy._pat_str == encoding._pat_str


def test_counting_up_to_a_limit():
    encoding, _ = both("cl100k_base")
    text = "one two three " * 1000
    count = len(encoding.encode(text))
    assert encoding.count(text) == count
    assert encoding.count_till_limit(text, count) == count
    assert encoding.count_till_limit(text, count - 1) is None
    assert encoding.count_till_limit("", 0) == 0
    assert encoding.count("\ud800") == 1
    assert encoding.count_till_limit(text, 10**30) == count
    assert encoding.count_till_limit("a", np.int64(1)) == 1
    with pytest.raises(ArgumentError, match="must not be negative"):
        encoding.count_till_limit("a", -1)
    with pytest.raises(TypeError, match=r"`limit` must be a whole number, got 1\.5"):
        encoding.count_till_limit("a", 1.5)


def test_counting_refuses_what_encoding_refuses():
    encoding, _ = both("cl100k_base")
    with pytest.raises(ArgumentError, match="special token"):
        encoding.count(f"\ud800{END}")


def test_numpy_comes_only_with_an_array():
    program = (
        "import sys; from hotgrid.tokens import Encoding; "
        "e = Encoding('x', pat_str='.', mergeable_ranks={b'a': 0}, special_tokens={}); "
        "assert e.encode('aa') == [0, 0] and e.decode([0]) == 'a' and e.count('a') == 1; "
        "assert not {'numpy', 'torch'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
