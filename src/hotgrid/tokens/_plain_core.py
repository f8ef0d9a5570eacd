"""The native core's token functions in plain Python, for where it is not built.

The answers are the same, hundreds of times slower. `token_core` gives the one that is here.
"""

import base64
import heapq
import operator
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from hotgrid import _native
from hotgrid.errors import ArgumentError

_LONGEST = 65535
_NO_RANK = 2**32 - 1
# Pieces that are remembered with their tokens.
_MOST_KEPT = 100_000


def token_core() -> Any:
    """The native core, or this module, which has the same names."""
    return _native.core() if _native.available() else sys.modules[__name__]


def threads() -> int:
    """How many threads there are to use."""
    return 1


class Specials:
    """Finds strings in texts: the first match, and the longest of several at one place."""

    def __init__(self, strings: Mapping[str, int]) -> None:
        self._tokens = {string: token for string, token in strings.items() if string}
        longest_first = sorted(self._tokens, key=len, reverse=True)
        for string in longest_first:
            string.encode()  # a surrogate is an error, as in the native core
        self._find = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        self.longest = max((len(string.encode()) for string in self._tokens), default=0)

    def first_in(self, text: str) -> str | None:
        """A string that a text holds, or None."""
        found = self._find.search(_checked(text))
        return found[0] if found else None

    def first_in_any(self, texts: Sequence[str]) -> str | None:
        """A string that one of the texts holds, or None."""
        return next((found for found in map(self.first_in, texts) if found is not None), None)

    def segments(self, text: str) -> list[tuple[str, int | None]]:
        """Stretches of ordinary text, each with the special token after it, or None."""
        made: list[tuple[str, int | None]] = []
        at = 0
        for found in self._find.finditer(_checked(text)):
            made.append((text[at : found.start()], self._tokens[found[0]]))
            at = found.end()
        return [*made, (text[at:], None)]


class BytePairs:
    """A vocabulary that encodes pieces and decodes tokens."""

    def __init__(
        self,
        ranks: Mapping[bytes, int],
        specials: Mapping[str, int],
        priorities: Mapping[tuple[bytes, bytes], int] | None = None,
        whole_first: bool = True,
    ) -> None:
        self._ranks = dict(ranks)
        self._whole_first = whole_first
        get = self._ranks.get
        self._join: Callable[[bytes, bytes], int | None] = (
            (lambda left, right: get(left + right))
            if priorities is None
            else (lambda left, right: priorities.get((left, right)))
        )
        # Where two names share a token, the first is its name.
        named = {token: name.encode() for name, token in reversed(list(specials.items()))}
        self._bytes = named | {rank: token for token, rank in self._ranks.items()}
        self._kept: dict[bytes, list[int]] = {}
        self.size = len(self._ranks)
        self.highest = max(self._ranks.values(), default=0)

    @classmethod
    def from_ranks(
        cls, ranks: Mapping[bytes, int], specials: Mapping[str, int], pattern: str | None
    ) -> "BytePairs":
        """Make one from tokens and their ranks."""
        del pattern
        return cls(_valid(ranks), specials)

    @classmethod
    def from_rank_file(
        cls, file: bytes, specials: Mapping[str, int], pattern: str | None
    ) -> "BytePairs":
        """Make one from the lines of a `.tiktoken` file."""
        del pattern
        ranks: dict[bytes, int] = {}
        for number, line in enumerate(file.split(b"\n"), 1):
            if not line.strip():
                continue
            parts = line.rstrip(b"\r").split(b" ")
            if len(parts) != 2:
                _refuse(number, "expected a token in base64, a space and a rank")
            try:
                token = base64.b64decode(parts[0], validate=True)
            except ValueError:
                _refuse(number, "the token is not base64")
            if not parts[1].isdigit() or len(parts[1]) > 10 or int(parts[1]) >= _NO_RANK:
                _refuse(number, f"the rank is not a number below {_NO_RANK}")
            ranks[token] = int(parts[1])
        return cls(_valid(ranks), specials)

    @classmethod
    def from_merges(
        cls,
        ranks: Mapping[bytes, int],
        merges: Sequence[tuple[int, int, int]],
        whole_first: bool,
        specials: Mapping[str, int],
        pattern: str | None,
    ) -> "BytePairs":
        """Make one from tokens and the pairs that merge, best first."""
        del pattern
        tokens = {rank: token for token, rank in _valid(ranks).items()}
        priorities: dict[tuple[bytes, bytes], int] = {}
        for place, (left, right, _) in enumerate(merges):
            priorities.setdefault((tokens[left], tokens[right]), place)
        return cls(ranks, specials, priorities, whole_first)

    def ranks(self) -> dict[bytes, int]:
        """Tokens and their ranks."""
        return dict(self._ranks)

    def rank_of(self, token: bytes) -> int | None:
        """The rank of a token, or None."""
        return self._ranks.get(token)

    def encode_piece(self, piece: bytes, merged: bool = False) -> list[int]:
        """The tokens of one piece; `merged` ones even if it is a token as a whole."""
        if self._whole_first and not merged and piece in self._ranks:
            return [self._ranks[piece]]
        if (kept := self._kept.get(piece)) is not None:
            return list(kept)
        tokens = [self._rank(part) for part in _parts(piece, self._join)]
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        self._kept[piece] = tokens
        return list(tokens)

    def encode_pieces(self, pieces: Sequence[str], as_array: bool) -> list[int]:
        """The tokens of texts that already are pieces."""
        del as_array
        return [token for piece in pieces for token in self.encode_piece(piece.encode())]

    def decode(self, tokens: Sequence[int]) -> bytes:
        """The bytes of tokens."""
        return b"".join(self.decode_each(tokens))

    def decode_each(self, tokens: Sequence[int]) -> list[bytes]:
        """The bytes of each token."""
        if not hasattr(tokens, "__getitem__") or isinstance(tokens, (str, Mapping)):
            raise TypeError(f"expected a sequence of tokens, got {type(tokens).__name__}")
        return [self._token(operator.index(token)) for token in tokens]

    def offsets(self, tokens: Sequence[int], in_bytes: bool) -> list[int]:
        """Where each token starts, in bytes or in characters."""
        starts: list[int] = []
        done = 0
        for token in self.decode_each(tokens):
            within = sum(byte & 0xC0 == 0x80 for byte in token)
            begun = not in_bytes and done and token[:1] and token[0] & 0xC0 == 0x80
            starts.append(done - 1 if begun else done)
            done += len(token) - (0 if in_bytes else within)
        return starts

    def _token(self, token: int) -> bytes:
        if not 0 <= token < 2**32:
            raise OverflowError(f"a token must be in the range 0 to {_NO_RANK}, got {token}")
        if token not in self._bytes:
            raise KeyError(f"Invalid token for decoding: {token}")
        return self._bytes[token]

    def _rank(self, part: bytes) -> int:
        if part not in self._ranks:
            raise ArgumentError(
                f"the text has the byte 0x{part[0]:02X}, not a token of this vocabulary "
                "and part of none that fits; add all 256 bytes to its ranks"
            )
        return self._ranks[part]


def _parts(piece: bytes, join: Callable[[bytes, bytes], int | None]) -> list[bytes]:
    """Merge the best pair of neighbours, leftmost first, until none is left."""
    size = len(piece)
    parts: list[bytes] = [piece[at : at + 1] for at in range(size)]
    ahead, behind = list(range(-1, size - 1)), list(range(1, size + 1))
    heap: list[tuple[int, int, bytes, bytes]] = []

    def offer(left: int) -> None:
        if left >= 0 and (right := behind[left]) < size:
            rank = join(parts[left], parts[right])
            if rank is not None:
                heapq.heappush(heap, (rank, left, parts[left], parts[right]))

    for left in range(size):
        offer(left)
    while heap:
        _, left, first, second = heapq.heappop(heap)
        right = behind[left]
        if parts[left] != first or right >= size or parts[right] != second:
            continue  # one of them has been joined to another meanwhile
        parts[left], parts[right] = first + second, b""
        behind[left] = behind[right]
        if behind[left] < size:
            ahead[behind[left]] = left
        offer(left)
        offer(ahead[left])
    return [part for part in parts if part]


def _valid(ranks: Mapping[bytes, int]) -> Mapping[bytes, int]:
    seen: set[int] = set()
    for token, rank in ranks.items():
        if not isinstance(token, bytes):
            raise TypeError(f"a token must be bytes, got {token!r}")
        if not token:
            raise ValueError(f"token {rank} is empty")
        if len(token) > _LONGEST:
            raise ValueError(f"token {rank} has {len(token)} bytes; {_LONGEST} are the most")
        if not 0 <= operator.index(rank) < _NO_RANK:
            raise RuntimeError(f"rank {rank} is not a number below {_NO_RANK}")
        if rank in seen:
            raise ValueError(f"two tokens have the rank {rank}")
        seen.add(rank)
    return ranks


def _refuse(line: int, why: str) -> NoReturn:
    raise ValueError(f"line {line}: {why}")


def _checked(text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"expected a text (str), got {type(text).__name__}")
    str.encode(text)  # a lone surrogate is an error, as in the native core
    return text
