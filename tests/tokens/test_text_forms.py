"""Texts as the interpreter holds them: characters of one, two or four bytes, UTF-8 or none."""

import json

import pytest
from hypothesis import given, strategies as st

from hotgrid.errors import ArgumentError

from .test_equality import both

ALPHABETS = {
    "one byte": "ab é\u00ff1",
    "two bytes": "ab éж中\u07ff\u0800\uffff ",
    "four bytes": "ab éж中🙂\U00010000\U0010ffff ",
}
# Some end amid what is converted at once, some are long enough to be cut by threads.
SIZES = [0, 1, 7, 8, 9, 63, 64, 65, 500, (1 << 17) - 1, (1 << 17) + 9]


def without_utf8(text: str) -> str:
    """A copy without cached UTF-8."""
    return json.loads(json.dumps(text))


def with_utf8(text: str) -> str:
    encoding, _ = both("cl100k_base")
    copy = without_utf8(text)
    encoding.encode(copy)  # looking for special tokens makes the interpreter keep UTF-8
    return copy


@pytest.mark.parametrize("alphabet", ALPHABETS.values(), ids=ALPHABETS.keys())
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("threads", [1, 4])
def test_every_form_gives_the_tokens_of_tiktoken(alphabet: str, size: int, threads: int):
    ours, theirs = both("cl100k_base")
    text = (alphabet * (size // len(alphabet) + 1))[:size]
    expected = theirs.encode_ordinary(text)
    assert ours.encode_ordinary(without_utf8(text)) == expected
    assert ours.encode_ordinary(with_utf8(text)) == expected
    assert ours.count(without_utf8(text), disallowed_special=()) == len(expected)
    batch = ["x", without_utf8(text), with_utf8(text), without_utf8(text)]
    rows = [theirs.encode_ordinary("x"), expected, expected, expected]
    assert ours.encode_ordinary_batch(batch, num_threads=threads) == rows
    flat = ours.encode_flat(batch, num_threads=threads, disallowed_special=())
    assert [row.tolist() for row in flat.rows()] == rows


@given(
    st.lists(st.sampled_from(list(ALPHABETS.values())).flatmap(st.text), max_size=5),
    st.sampled_from([1, 3]),
)
def test_forms_mix_in_a_batch(batch: list[str], threads: int):
    ours, theirs = both("o200k_base")
    rows = [theirs.encode_ordinary(text) for text in batch]
    assert ours.encode_ordinary_batch(map(without_utf8, batch), num_threads=threads) == rows


@pytest.mark.parametrize("threads", [1, 4])
def test_a_lone_surrogate_is_replaced_wherever_it_is(threads: int):
    ours, theirs = both("cl100k_base")
    batch = ["ж" * 40, "中" * 30 + "\ud800", "\udfff🙂" * 9, "é"]
    rows = [theirs.encode_ordinary(text) for text in batch]
    assert ours.encode_ordinary_batch(batch, num_threads=threads) == rows
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        ours.encode_to_numpy("中\ud800", disallowed_special=())


def test_more_than_a_group_of_texts_and_specials_between():
    """Lists are made of a megabyte of text at a time."""
    ours, theirs = both("cl100k_base")
    batch = [
        f"{'Straße 中 ' * (n % 97)}<|endoftext|>{n}" * (1 + n % 3) for n in range(3000)
    ] + [""] * 5
    rows = [theirs.encode(text, allowed_special="all") for text in batch]
    assert ours.encode_batch(batch, num_threads=1, allowed_special="all") == rows
    with pytest.raises(ArgumentError, match="endoftext"):
        ours.encode_batch(batch, num_threads=1)
    with pytest.raises(TypeError, match=r"expected texts \(str\), got bytes at index 1"):
        ours.encode_ordinary_batch(["ok", b"no"], num_threads=1)  # type: ignore[list-item]
