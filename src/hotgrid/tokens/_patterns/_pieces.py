"""Texts cut by any regular expression, with the `regex` library: slower, same tokens."""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from hotgrid.errors import ArgumentError

from ._patterns import Pieces


class RegexPieces:
    """Encodes texts like `BytePairs` of the native core, for patterns without a lexer."""

    def __init__(self, core: Any, pattern: str, *, keeps_rest: bool = False) -> None:
        self.core = core
        self.pattern = pattern
        self.pieces = Pieces(pattern, keeps_rest=keeps_rest)
        self.split = self.pieces.split

    def encode(self, text: str, allowed: Any) -> list[int]:
        """The tokens of a text."""
        if not isinstance(text, str):
            raise TypeError(f"expected a text (str), got {type(text).__name__}")
        if allowed is None:
            return self.core.encode_pieces(self.split(text), as_array=False)
        tokens: list[int] = []
        for stretch, special in allowed.segments(text):
            tokens += self.core.encode_pieces(self.split(stretch), as_array=False)
            if special is not None:
                tokens.append(special)
        return tokens

    def starts(self, text: str, allowed: Any, joined: list[int], in_bytes: bool) -> list[int]:
        """Where tokens start in a text, from where they start in all its pieces put together.

        Text that the pattern leaves out has no tokens.
        """
        places, reached, ends = [], 0, []
        for begin, size in self._places(text, allowed, in_bytes):
            places.append(begin - reached)
            ends.append(reached)
            reached += size
        return [start + places[bisect_right(ends, start) - 1] for start in joined]

    def _places(self, text: str, allowed: Any, in_bytes: bool) -> Iterator[tuple[int, int]]:
        """Where each piece or special token starts, and its size."""

        def size(part: str) -> int:
            return len(part.encode()) if in_bytes else len(part)

        at = 0
        for stretch, special in [(text, None)] if allowed is None else allowed.segments(text):
            seen = 0
            for begin, end in self.pieces.places(stretch):
                at += size(stretch[seen:begin])
                yield at, (piece := size(stretch[begin:end]))
                at += piece
                seen = end
            at += size(stretch[seen:])
            if special is not None:
                name = size(self.core.decode([special]).decode())
                yield at, name
                at += name

    def encode_array(self, text: str, allowed: Any) -> Any:
        """The tokens of a text as an array that cannot be written to."""
        import numpy as np

        tokens = np.array(self.encode(text, allowed), dtype=np.uint32)
        tokens.flags.writeable = False
        return tokens

    def encode_batch(self, texts: list[str], allowed: Any, threads: int) -> list[list[int]]:
        """The tokens of each text; on one thread, as the `regex` library holds the GIL."""
        del threads
        return [self.encode(text, allowed) for text in texts]

    def encode_flat(self, texts: list[str], allowed: Any, threads: int) -> tuple[Any, Any]:
        """The tokens of all texts, and where each begins."""
        import numpy as np

        rows = self.encode_batch(texts, allowed, threads)
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        return np.array([token for row in rows for token in row], dtype=np.uint32), offsets

    def count(self, text: str, allowed: Any, limit: int) -> int:
        """How many tokens a text has."""
        del limit
        return len(self.encode(text, allowed))

    def encode_prefix(self, text: bytes, allowed: Any, keep: int) -> tuple[Any, int]:
        """Refused: it is not known where text may be cut for such a pattern."""
        del text, allowed, keep
        raise ArgumentError(
            f"texts cannot be encoded in parts by the pattern {self.pattern!r}: only patterns "
            "with a lexer of the native core can; encode the whole text with `encode`"
        )
