"""Unfinished texts: which tokens stay, and what may follow them."""

import bisect
from typing import Any, Protocol

from ._normal_form import NormalForm

_BLANKS = frozenset(b" \n\t")
# What White_Space means in Unicode; `str.isspace` says yes to four control characters more.
_CONTROLS = frozenset("\x1c\x1d\x1e\x1f")


class Tables(Protocol):
    """The methods that an encoding must provide."""

    _core: Any
    _texts: Any

    def decode_bytes(self, tokens: list[int]) -> bytes: ...

    def token_byte_values(self) -> list[bytes]: ...

    def _encode_single_piece(self, text_or_bytes: str | bytes) -> list[int]: ...

    def _merge_single_piece(self, piece: bytes) -> list[int]: ...


def encode(tables: Tables, text: str, allowed: Any) -> tuple[list[int], list[list[int]]]:
    """Tokens that stay whatever follows, and sequences that may follow them."""
    parted = _settled if isinstance(tables._texts, NormalForm) else _parted
    stable, open_bytes = parted(tables, text, allowed)
    return stable, completions(tables, open_bytes) if open_bytes else []


def encode_bytes(tables: Tables, text: bytes, valid: int) -> list[int]:
    """Tokens of bytes of which only the first `valid` are UTF-8.

    Those are encoded as usual, normalised too, which no later byte can change;
    their last piece and all that follows become one piece.
    """
    stable, open_bytes = _parted(tables, text[:valid].decode(), None)
    return stable + tables._encode_single_piece(open_bytes + text[valid:])


def _settled(tables: Tables, text: str, allowed: Any) -> tuple[list[int], bytes]:
    """Tokens that stay where what follows may also change the normal form, and the rest."""
    tokens = tables._texts.encode(text, allowed)
    stretch = _last_stretch(text, allowed)
    size, settled = tables._texts.settled(stretch)
    pieces = tables._texts.split(stretch)
    stable = len(tokens)
    # From the end, so that text which the pattern leaves out makes more open, never less.
    while pieces and size > settled:
        piece = pieces.pop()
        size -= len(piece)
        stable -= len(tables._encode_single_piece(piece))
    return tokens[:stable], tables.decode_bytes(tokens[stable:])


def _last_stretch(text: str, allowed: Any) -> str:
    """The text after the last special token."""
    return allowed.segments(text)[-1][0] if allowed is not None else text


def _parted(tables: Tables, text: str, allowed: Any) -> tuple[list[int], bytes]:
    """Tokens that stay by tiktoken's rule, and the bytes after them."""
    tokens = tables._texts.encode(text, allowed)
    pieces = tables._texts.split(_last_stretch(text, allowed))
    # After a special token nothing is open.
    last = len(tables._encode_single_piece(pieces[-1])) if pieces else 0

    def blank(token: int) -> bool:
        text = tables.decode_bytes([token])
        # A special token stays special, whatever its text.
        return _BLANKS.issuperset(text) and tables._core.rank_of(text) == token

    # Blanks may join a newline that follows, so all tokens of blanks before them are open.
    if last and blank(tokens[-last]):
        while last < len(tokens) and blank(tokens[-last - 1]):
            last += 1
    stable = len(tokens) - last
    return tokens[:stable], tables.decode_bytes(tokens[stable:])


def completions(tables: Tables, open_bytes: bytes) -> list[list[int]]:
    """Sequences of tokens that may occur where `open_bytes` ends the text.

    Each begins with those bytes and ends with the first token that reaches beyond them.
    """
    found: set[tuple[int, ...]] = set()
    vocabulary = tables.token_byte_values()
    for token in _beginning_with(vocabulary, open_bytes):
        found.add(tuple(tables._encode_single_piece(token)))
    for at in range(1, len(open_bytes)):
        for token in _beginning_with(vocabulary, open_bytes[at:]):
            tokens = _encode(tables, open_bytes[:at] + token)
            found.add(_reaching(tables, tokens, len(open_bytes)))
    found |= _split_at_blank(tables, open_bytes)
    return [list(tokens) for tokens in found]


def _beginning_with(vocabulary: list[bytes], start: bytes) -> list[bytes]:
    first = bisect.bisect_left(vocabulary, start)
    last = first
    while last < len(vocabulary) and vocabulary[last].startswith(start):
        last += 1
    return vocabulary[first:last]


def _encode(tables: Tables, piece: bytes) -> list[int]:
    """Split again where it is text: what follows may have made a boundary."""
    texts = tables._texts
    if isinstance(texts, NormalForm):  # the bytes must stay what they are
        texts = texts.texts
    try:
        return texts.encode(piece.decode(), None)
    except UnicodeDecodeError:
        return tables._merge_single_piece(piece)


def _reaching(tables: Tables, tokens: list[int], size: int) -> tuple[int, ...]:
    taken: list[int] = []
    length = 0
    for token in tokens:
        taken.append(token)
        length += len(tables.decode_bytes([token]))
        if length >= size:
            break
    return tuple(taken)


def _split_at_blank(tables: Tables, open_bytes: bytes) -> set[tuple[int, ...]]:
    """A blank at the end may leave its piece and begin the next word."""
    text = open_bytes.decode(errors="surrogateescape")
    last = text[-1:]
    size = len(last.encode(errors="surrogateescape"))
    if not last.isspace() or last in _CONTROLS or size == len(open_bytes):
        return set()
    head, tail = open_bytes[:-size], open_bytes[-size:]
    return {(*tables._merge_single_piece(head), *tables._merge_single_piece(tail))}
