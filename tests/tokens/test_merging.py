"""The native merge does what its twin in plain Python does, for any vocabulary."""

from hypothesis import given, strategies as st

from hotgrid.tokens import Encoding
from hotgrid.tokens._patterns import LEXERS
from hotgrid.tokens._twin import Twin, merge, merge_pairs

from .test_lexer_proof import BYTES, CELLS, MORE

WHOLE = r"(?s:.+)"


@st.composite
def vocabularies(draw: st.DrawFn) -> dict[bytes, int]:
    """All bytes and some tokens of few letters, with ranks in any order and with gaps."""
    letters = draw(st.sampled_from([b"a", b"ab", b"abc", "é中".encode()]))
    tokens = draw(
        st.lists(
            st.lists(st.sampled_from(letters), min_size=2, max_size=20).map(bytes), unique=True
        )
    )
    ranks = draw(
        st.lists(st.integers(0, 10**6), min_size=len(tokens), max_size=len(tokens), unique=True)
    )
    return BYTES | {token: 256 + rank for token, rank in zip(tokens, ranks, strict=True)}


pieces = st.one_of(
    st.text("abc", max_size=40), st.text("aé中", max_size=40), st.text("ab", max_size=400)
)


@given(ranks=vocabularies(), piece=pieces)
def test_one_piece(ranks: dict[bytes, int], piece: str):
    encoding = Encoding("x", pat_str=WHOLE, mergeable_ranks=ranks, special_tokens={})
    expected = merge(piece.encode(), ranks) if piece else []
    assert encoding._encode_single_piece(piece) == expected
    assert encoding.encode(piece) == expected
    assert encoding.decode(expected) == piece


@given(ranks=vocabularies(), data=st.data())
def test_one_piece_by_pairs(ranks: dict[bytes, int], data: st.DataObject):
    splits = [
        (token[:at], token[at:])
        for token in ranks
        for at in range(1, len(token))
        if token[:at] in ranks and token[at:] in ranks
    ]
    merges = data.draw(st.permutations(splits))
    by_rank = [(ranks[left], ranks[right], ranks[left + right]) for left, right in merges]
    encoding = Encoding._from_merges(
        "x", pat_str=WHOLE, mergeable_ranks=ranks, special_tokens={}, merges=(by_rank, False)
    )
    piece = data.draw(pieces)
    assert encoding.encode(piece) == merge_pairs(piece.encode(), ranks, merges)


@given(
    pattern=st.sampled_from([*LEXERS, r"\w+|\W", r"(?s:.)", r"\d+"]),
    ranks=vocabularies(),
    parts=st.lists(st.sampled_from([*CELLS, *MORE, "<s>", "</s>", "<s", "abab"]), max_size=30),
    allowed=st.sets(st.sampled_from(["<s>", "</s>"])),
)
def test_whole_texts(
    pattern: str, ranks: dict[bytes, int], parts: list[str], allowed: set[str]
):
    specials = {"<s>": 5_000_000, "</s>": 5_000_001}
    encoding = Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials)
    twin = Twin(pattern, ranks, specials)
    text = "".join(parts)
    rules = {"allowed_special": allowed, "disallowed_special": ()}
    expected = twin.encode(text, allowed)
    assert encoding.encode(text, **rules) == expected
    assert encoding.encode_to_numpy(text, **rules).tolist() == expected
    assert encoding.encode_batch([text, text], **rules) == [expected, expected]
    assert encoding.encode_flat([text, ""], **rules).tokens.tolist() == expected
    assert encoding.count(text, **rules) == len(expected)
    assert encoding.decode_bytes(expected) == twin.decode_bytes(expected)
    assert encoding.split(text) == twin.split(text)
