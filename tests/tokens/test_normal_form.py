"""Encodings that put texts in normal form C first, against that form as Unicode defines it."""

import hashlib
import pickle
import unicodedata
from functools import cache

import pytest
from hypothesis import example, given, strategies as st

from hotgrid.tokens import (
    Encoding,
    _normal_form,
    _streams,
    _unstable,
    get_encoding,
    load_huggingface,
    save_huggingface,
    save_tiktoken,
)

from .test_lexer_proof import BYTES

SPECIALS = {"<K>": 256, "<K>>": 257}
# A Kelvin sign becomes a K; a stroke joins ">"; jamo and vowel signs join what is before them.
PARTS = ["e", "\u0301", "\u0323", "é", "\u212a", "<", ">", "<K>", "<K>>", "\u0338", "\u1112"]
PARTS += ["\u1161", "\u11ab", "\u09c7", "\u09be", " ", "中", "👍", "\ud83d", "\ude00"]
texts = st.lists(st.sampled_from(PARTS), max_size=12).map("".join)


def pair(pat_str: str) -> tuple[Encoding, Encoding]:
    made = [
        Encoding("x", pat_str=pat_str, mergeable_ranks=BYTES, special_tokens=SPECIALS)
        for _ in range(2)
    ]
    made[0]._normalise()
    return made[0], made[1]


def by_definition(plain: Encoding, text: str) -> tuple[list[int], str]:
    """Tokens and the normalised text: specials first, then each stretch by itself."""
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    tokens, normalised, stretch = [], "", ""

    def close() -> None:
        nonlocal stretch, normalised
        form = unicodedata.normalize("NFC", stretch)
        tokens.extend(plain.encode_ordinary(form))
        normalised, stretch = normalised + form, ""

    at = 0
    while at < len(text):
        name = next((name for name in ("<K>>", "<K>") if text.startswith(name, at)), None)
        if name is None:
            stretch, at = stretch + text[at], at + 1
            continue
        close()
        tokens.append(SPECIALS[name])
        normalised, at = normalised + name, at + len(name)
    close()
    return tokens, normalised


@pytest.mark.parametrize("pat_str", ["qwen2", r"\w+|\W+"])
@given(text=texts, other=texts)
def test_all_ways_to_encode_agree_with_the_definition(pat_str: str, text: str, other: str):
    normal, plain = pair(pat_str)
    expected, normalised = by_definition(plain, text)
    assert normal.encode(text, allowed_special="all") == expected
    assert normal.count(text, allowed_special="all") == len(expected)
    rows = [expected, by_definition(plain, other)[0]]
    assert normal.encode_batch([text, other], allowed_special="all") == rows
    flat = normal.encode_flat([text, other], allowed_special="all")
    assert flat.tokens.tolist() == rows[0] + rows[1]
    assert flat.offsets.tolist() == [0, len(rows[0]), len(rows[0]) + len(rows[1])]
    tokens, places = normal.encode_with_offsets(text, unit="byte", allowed_special="all")
    assert tokens == expected
    for token, place in zip(tokens, places, strict=True):
        spelled = plain.decode_single_token_bytes(token)
        assert normalised.encode()[place : place + len(spelled)] == spelled


@given(text=texts)
def test_no_special_tokens(text: str):
    normal, plain = pair("qwen2")
    form = unicodedata.normalize(
        "NFC", text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )
    expected = plain.encode_ordinary(form)
    assert normal.encode_ordinary(text) == expected
    assert normal.encode_ordinary_batch([text]) == [expected]
    assert normal.encode_flat([text], disallowed_special=()).tokens.tolist() == expected
    assert "".join(normal.split(text)) == form


@given(parts=st.lists(texts, max_size=8), size=st.integers(1, 6))
def test_parts_of_a_text_are_one_text(parts: list[str], size: int):
    normal, plain = pair("qwen2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_streams, "_CHARACTERS", size)
        found = [
            token
            for tokens in normal.encode_stream(parts, allowed_special="all")
            for token in tokens.tolist()
        ]
    assert found == by_definition(plain, "".join(parts))[0]


def test_texts_are_cut_where_nothing_joins():
    everything = [chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    followers = {
        form[1] for each in everything if len(form := unicodedata.normalize("NFD", each)) > 1
    }
    starts = [each for each in everything if _normal_form._STARTS.match(each)]
    assert len(starts) > 30_000
    for each in starts:
        first = unicodedata.normalize("NFD", each)[0]
        assert unicodedata.combining(first) == 0 and first not in followers


# Marks of different classes, which change places; letters, blanks and apostrophes that join
# what stands before them.
OPEN = "aeBsr1.<='!中か \n\r\u3000\u00a0\u0315\u0301\u0323\u0327\u0338\u3099\u1112\u1161\u11ab"
HARD = [
    "",
    *OPEN,
    "\u09be",
    "\u0315\u0301",
    "\u0301a",
    "re",
    "e\u0301",
    " \n",
    "中 a",
    "\u0338'",
]
open_texts = st.text(OPEN, max_size=8)


@cache
def of_pairs(pat_str: str) -> Encoding:
    """Any two different characters may be a token, so that every moved boundary shows."""
    letters = [*OPEN, "é", "á", "≮"]
    pairs = sorted((a + b for a in letters for b in letters if a != b), key=hash_of)
    ranks = dict(BYTES)
    for token in (*letters, *pairs):
        for size in range(2, len(token.encode()) + 1):
            ranks.setdefault(token.encode()[:size], len(ranks))
    specials = {"<|end|>": len(ranks)}
    made = Encoding("x", pat_str=pat_str, mergeable_ranks=ranks, special_tokens=specials)
    made._normalise()
    return made


def hash_of(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


@pytest.mark.parametrize("pat_str", ["gpt2", "cl100k", "llama3", "qwen2", "o200k", r"\w+|\W+"])
@given(text=open_texts)
@example(text="中BB")  # one piece of o200k if a small letter ends it
@example(text="か'r")
@example(text="a\n  ")
@example(text="é<\u0327\u0301")
def test_stable_tokens_stay_whatever_follows(pat_str: str, text: str):
    encoding = of_pairs(pat_str)
    stable, rest = _unstable._settled(encoding, text, None)
    assert encoding.decode_bytes(stable) + rest == unicodedata.normalize("NFC", text).encode()
    for following in HARD:
        assert encoding.encode_ordinary(text + following)[: len(stable)] == stable


@pytest.mark.parametrize("pat_str", ["qwen2", r"\w+|\W+"])
@given(text=open_texts)
@example(text="a\u0315")
def test_what_may_follow_begins_with_the_rest(pat_str: str, text: str):
    encoding = of_pairs(pat_str)
    stable, completions = encoding.encode_with_unstable(
        f"é<|end|>{text}", allowed_special="all"
    )
    form = f"é<|end|>{unicodedata.normalize('NFC', text)}".encode()
    start = encoding.decode_bytes(stable)
    assert form.startswith(start)
    assert bool(completions) == bool(text)
    for tokens in completions:
        assert encoding.decode_bytes(tokens).startswith(form[len(start) :])


def test_a_mark_may_pass_another_and_join_the_piece_before():
    ranks = get_encoding()._mergeable_ranks
    encoding = Encoding("x", pat_str="qwen2", mergeable_ranks=ranks, special_tokens={})
    encoding._normalise()
    stable, _ = encoding.encode_with_unstable("caf a\u0315")
    assert encoding.decode_bytes(stable) == b"caf"
    assert encoding.decode(encoding.encode("caf a\u0315\u0301")) == "caf á\u0315"
    stable, _ = encoding.encode_with_unstable("one two, three fou")
    assert encoding.decode_bytes(stable) == b"one two, three"


@given(text=texts, tail=texts, cut=st.sampled_from([b"\xff", b"\xcc", b"\xe1\x84"]))
def test_bytes_are_normalised_up_to_the_first_that_is_no_utf8(text: str, tail: str, cut: bytes):
    normal, plain = pair("qwen2")
    text, tail = (each.encode("utf-8", "ignore").decode() for each in (text, tail))
    form = unicodedata.normalize("NFC", text).encode()
    rest = cut + b"." + tail.encode()
    assert normal._encode_bytes(text.encode() + rest) == plain._encode_bytes(form + rest)
    assert normal.decode_bytes(normal._encode_bytes(text.encode() + rest)) == form + rest


def test_saved_loaded_and_copied(tmp_path):
    normal, plain = pair("qwen2")
    text = "e\u0301 \u212a"
    assert normal.encode(text) == plain.encode("é K") != plain.encode(text)
    save_huggingface(normal, tmp_path / "tokenizer.json")
    loaded = load_huggingface(tmp_path / "tokenizer.json")
    for encoding in (
        loaded,
        pickle.loads(pickle.dumps(normal)),
        pickle.loads(pickle.dumps(loaded)),
    ):
        assert encoding.encode(text) == normal.encode(text)


def test_ranks_alone_cannot_say_that_texts_are_normalised(tmp_path):
    with pytest.raises(ValueError, match="normalises texts"):
        save_tiktoken(pair("qwen2")[0], tmp_path / "ranks.tiktoken")
