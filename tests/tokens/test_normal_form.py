"""Encodings that put texts in normal form C first, against that form as Unicode defines it."""

import pickle
import unicodedata

import pytest
from hypothesis import given, strategies as st

from hotgrid.tokens import (
    Encoding,
    _normal_form,
    _streams,
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
def test_nothing_special(text: str):
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
