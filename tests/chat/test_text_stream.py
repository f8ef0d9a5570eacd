"""Text as tokens arrive."""

from hypothesis import given, strategies as st

from hotgrid.chat._generate._text import TextStream

from .tiny import byte_encoding

WORDS = (b"ab", b"abc", "\u00e4\u00f6".encode(), "\u00e4".encode()[:1] + b"x", b"<e", b"nd>")
ENCODING = byte_encoding(*WORDS)
TOKENS = [*range(256, 256 + len(WORDS)), *b"abcx<>end", *"\u00e4\u20ac".encode()]


def cut(text: str, stops: list[str]) -> tuple[str, bool]:
    """The text before the stop that is complete first."""
    for end in range(len(text) + 1):
        starts = [end - len(stop) for stop in stops if text[:end].endswith(stop)]
        if starts:
            return text[: min(starts)], True
    return text, False


@given(
    st.lists(st.sampled_from(TOKENS), max_size=20),
    st.lists(st.sampled_from(["a", "bca", "abab", "bc", "<end>", "\u00e4", "xx"]), max_size=3),
)
def test_pieces_are_the_text_before_the_stop(tokens: list[int], stops: list[str]) -> None:
    stream, pieces = TextStream(ENCODING, stops), []
    for token in tokens:
        pieces.append(stream.push(token))
        if stream.stopped:
            break
    pieces.append(stream.close())
    expected, stopped = cut(ENCODING.decode(tokens), stops)
    assert "".join(pieces) == expected
    assert stream.stopped == stopped


def test_text_is_held_only_while_it_may_begin_a_stop() -> None:
    stream = TextStream(ENCODING, ["<end>"])
    found = [stream.push(token) for token in b"x<enx<end"]
    assert found == ["x", "", "", "", "<enx", "", "", "", ""]
    assert stream.close() == "<end"


def test_half_a_character_is_held() -> None:
    stream = TextStream(ENCODING, [])
    assert [stream.push(token) for token in "\u20ac".encode()] == ["", "", "\u20ac"]
    assert stream.push("\u20ac".encode()[0]) == ""
    assert stream.close() == "\ufffd"
