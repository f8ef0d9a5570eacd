"""`Row`: the next tokens of one sequence in a batch."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """The next tokens of one sequence.

    Attributes:
        tokens: The tokens to feed; none where it follows.
        position: How many are in the cache.
        before: The token before these; -1 if there is none.
        blocks: The blocks of the sequence, of 64 bits each; they hold the new tokens, too.
        follows: Its place in the burst before, whose last token is fed; -1 if tokens are given.
    """

    tokens: Sequence[int]
    position: int
    before: int
    blocks: "array[int]"
    follows: int = -1
