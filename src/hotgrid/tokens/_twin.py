"""The same algorithm in plain Python: slow, short, and the reference for the fast one.

Byte pair encoding in three steps:

1. `cut`: special tokens that are allowed are taken out first; what lies between them is
   encoded on its own.
2. `split`: a regular expression cuts each stretch into pieces. No token crosses a piece.
3. `merge`: a piece that is a token is that token. Any other starts as single bytes, and
   the two neighbours whose bytes together have the lowest rank are joined, the leftmost
   of several, until no two neighbours make a token.

Decoding puts the bytes of the tokens one after another. Nothing is cached and nothing is
clever here: what this file does is what the encoder of the native core must do, token for
token, and the tests compare the two.
"""

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence

from ._patterns import splitter


def merge(piece: bytes, ranks: Mapping[bytes, int]) -> list[int]:
    """The tokens of one piece.

    Args:
        piece: Any bytes.
        ranks: Tokens and their ranks; a lower rank is joined first.

    Raises:
        KeyError: A byte that is not a token is left over.
    """
    if piece in ranks:
        return [ranks[piece]]
    parts = [piece[at : at + 1] for at in range(len(piece))]
    while True:
        joins = [
            (ranks[left + right], at)
            for at, (left, right) in enumerate(itertools.pairwise(parts))
            if left + right in ranks
        ]
        if not joins:
            return [ranks[part] for part in parts]
        _, at = min(joins)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


def merge_pairs(
    piece: bytes,
    ranks: Mapping[bytes, int],
    merges: Sequence[tuple[bytes, bytes]],
) -> list[int]:
    """The tokens of one piece where a list says which pairs merge, best first.

    This is how HuggingFace's tokenizers think of it. Where several splits of one token are
    possible the two ways may differ.
    """
    priority = {pair: place for place, pair in enumerate(merges)}
    parts = [piece[at : at + 1] for at in range(len(piece))]
    while True:
        joins = [
            (priority[pair], at)
            for at, pair in enumerate(itertools.pairwise(parts))
            if pair in priority
        ]
        if not joins:
            return [ranks[part] for part in parts]
        _, at = min(joins)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


def cut(
    text: str, special_tokens: Mapping[str, int], allowed: Collection[str]
) -> Iterator[tuple[str, int | None]]:
    """Stretches of ordinary text, each with the special token that follows it, or None."""
    at = 0
    while True:
        found = [
            (place, -len(name), name)
            for name in allowed
            if name and name in special_tokens and (place := text.find(name, at)) >= 0
        ]
        if not found:
            yield text[at:], None
            return
        place, _, name = min(found)
        yield text[at:place], special_tokens[name]
        at = place + len(name)


class Twin:
    r"""An encoding without the native core; the few methods that matter.

    Args:
        pat_str: The pattern that cuts texts into pieces.
        mergeable_ranks: Tokens and their ranks.
        special_tokens: Special tokens and their ranks.

    Example:
        >>> ranks = {b"a": 0, b"b": 1, b"ab": 2, b"abab": 3}
        >>> twin = Twin(r"\w+", ranks, {})
        >>> twin.encode("ababa")
        [3, 0]
        >>> twin.decode_bytes([3, 0])
        b'ababa'
    """

    def __init__(
        self,
        pat_str: str,
        mergeable_ranks: Mapping[bytes, int],
        special_tokens: Mapping[str, int],
    ) -> None:
        self.split = splitter(pat_str)
        self.ranks = mergeable_ranks
        self.specials = special_tokens
        self.tokens = {rank: name.encode() for name, rank in special_tokens.items()}
        self.tokens.update({rank: token for token, rank in mergeable_ranks.items()})

    def encode(self, text: str, allowed_special: Collection[str] = ()) -> list[int]:
        """The tokens of a text."""
        tokens: list[int] = []
        for stretch, special in cut(text, self.specials, allowed_special):
            for piece in self.split(stretch):
                tokens += merge(piece.encode(), self.ranks)
            if special is not None:
                tokens.append(special)
        return tokens

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """The bytes of tokens."""
        return b"".join(self.tokens[token] for token in tokens)
