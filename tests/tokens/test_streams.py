"""Texts and tokens that come in parts."""

import io
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from hotgrid.errors import ArgumentError
from hotgrid.tokens import Encoding, _streams

from .test_equality import both, texts
from .test_lexer_proof import BYTES

END = "<|endoftext|>"


def joined(stream) -> list[int]:
    return [token for part in stream for token in part.tolist()]


@pytest.fixture
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of a quarter of a megabyte would hide every cut."""
    monkeypatch.setattr(_streams, "_CHARACTERS", 8)


@given(
    parts=st.lists(
        texts | st.sampled_from([END, "<|end", "oftext|>", "word ", "\ud83d", "\udc4d"])
    ),
    name=st.sampled_from(["gpt2", "cl100k_base", "o200k_base"]),
)
def test_how_a_text_was_cut_does_not_matter(parts: list[str], name: str):
    encoding, _ = both(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_streams, "_CHARACTERS", 8)
        found = joined(encoding.encode_stream(iter(parts), allowed_special="all"))
    assert found == encoding.encode("".join(parts), allowed_special="all")


@pytest.mark.usefixtures("short_parts")
def test_files(tmp_path: Path):
    encoding, _ = both("o200k_base")
    text = "Some lines\r\nof text, it's 中文.\n\n  And more\n" * 300
    path = tmp_path / "text.txt"
    path.write_text(text, encoding="utf-8", newline="")
    expected = encoding.encode(text)
    assert joined(encoding.encode_stream(path)) == expected
    assert joined(encoding.encode_stream(io.StringIO(text, newline=""))) == expected
    path.write_bytes(b"fine \xff not fine")
    with pytest.raises(ArgumentError, match=r"text\.txt` is not UTF-8"):
        joined(encoding.encode_stream(path))


@pytest.mark.usefixtures("short_parts")
def test_little_is_held_back():
    encoding, _ = both("cl100k_base")
    taken: list[str] = []

    def source():
        for number in range(1000):
            taken.append(f"word number {number} ")
            yield taken[-1]

    stream = encoding.encode_stream(source())
    tokens = joined([next(stream)])
    assert len(taken) < 10
    tokens += joined(stream)
    assert tokens == encoding.encode("".join(taken))


@pytest.mark.usefixtures("short_parts")
def test_a_special_token_in_two_parts_is_refused_like_any():
    encoding, _ = both("cl100k_base")
    with pytest.raises(ArgumentError, match="endoftext"):
        joined(encoding.encode_stream(["some words here <|endof", "text|> and more words"]))


def test_surrogates_that_must_not_occur_are_no_obstacle():
    encoding, _ = both("cl100k_base")
    parts = encoding.encode_stream(["some ", "words"], disallowed_special={"\ud800"})
    assert joined(parts) == encoding.encode("some words")


def test_what_cannot_be_streamed():
    encoding, _ = both("cl100k_base")
    with pytest.raises(TypeError, match="write \\[text\\]"):
        joined(encoding.encode_stream("a text"))
    for wrong in (None, b"a text", 5):
        with pytest.raises(TypeError, match=r"expected a text \(str\), got "):
            joined(encoding.encode_stream(["a text", wrong]))
    other = Encoding("x", pat_str=r"\w+|\W", mergeable_ranks=BYTES, special_tokens={})
    with pytest.raises(ArgumentError, match="cannot be encoded in parts"):
        joined(other.encode_stream(["a text"]))


@given(text=st.text(), cut=st.data())
def test_decoding_never_gives_half_a_character(text: str, cut: st.DataObject):
    encoding, _ = both("cl100k_base")
    tokens = encoding.encode_ordinary(text)
    parts = list(encoding.decode_stream(iter(tokens)))
    assert "".join(parts) == text
    assert all(parts)
    some = tokens[: cut.draw(st.integers(0, len(tokens)))]
    assert "".join(encoding.decode_stream(some)) == encoding.decode(some)


def test_decoding_by_other_rules():
    encoding, _ = both("cl100k_base")
    half = [encoding.encode_single_token(b"\xe4")]
    assert list(encoding.decode_stream([*half, *encoding.encode("a")], errors="ignore")) == [
        "a"
    ]
    with pytest.raises(UnicodeDecodeError):
        list(encoding.decode_stream(half, errors="strict"))
    with pytest.raises(KeyError, match="Invalid token for decoding: 100256"):
        list(encoding.decode_stream([100256]))
