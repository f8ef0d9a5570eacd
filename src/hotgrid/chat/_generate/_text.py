"""From tokens to text as they arrive: whole characters, and stop texts across tokens."""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hotgrid.tokens import Encoding

from ._sampling import Likelihood

Finish = Literal["stop", "length", "cancelled"]


@dataclass(frozen=True)
class Piece:
    """A part of a reply.

    Attributes:
        text: Its text; whole characters, and never a part of a stop text.
        tokens: The tokens since the piece before. That which ends a text is not among them.
        likelihoods: The log probabilities of these tokens, if they were requested.
        finish: Why the reply ended, in its last piece: `stop` (the model's end or a stop
            text), `length` (as many tokens as allowed) or `cancelled`.
    """

    text: str
    tokens: tuple[int, ...] = ()
    likelihoods: tuple[Likelihood, ...] = ()
    finish: Finish | None = None


class TextStream:
    """The text of tokens, held back as long as it may begin a stop text.

    The stop text that is complete first counts, however the text is cut into tokens.
    """

    def __init__(self, encoding: Encoding, stops: Sequence[str]) -> None:
        self._encoding, self._stops = encoding, tuple(stops)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self.stopped = False

    def push(self, *tokens: int) -> str:
        """Add tokens, and return the text that is certain."""
        return self._certain(self._decoder.decode(self._encoding.decode_bytes(tokens)))

    def close(self) -> str:
        """Return the remaining text; half a character becomes U+FFFD."""
        text = self._certain(self._decoder.decode(b"", final=True))
        rest, self._held = self._held, ""
        return text + rest

    def _certain(self, text: str) -> str:
        if self.stopped:
            return ""
        text = self._held + text
        if not self._stops:
            return text
        ends = [(at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0]
        if ends:
            self.stopped, self._held = True, ""
            return text[: min(ends)[1]]
        keep = max(_overlap(text, stop) for stop in self._stops)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]


def _overlap(text: str, stop: str) -> int:
    """Return the length of the longest end of a text that begins a stop text."""
    for length in range(min(len(stop) - 1, len(text)), 0, -1):
        if stop.startswith(text[len(text) - length :]):
            return length
    return 0
