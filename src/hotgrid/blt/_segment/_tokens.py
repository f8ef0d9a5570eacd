"""`Tokens`: the tokens of a byte pair encoding as patches."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.tokens import Encoding

from ._segmenter import Segmenter


@dataclass(frozen=True)
class Tokens(Segmenter):
    """A patch is a token of an encoding; bytes that are not UTF-8 are patches of their own.

    The merges of a token depend on what follows it, so it is not causal.

    Args:
        encoding: See `hotgrid.tokens.get_encoding`.

    Raises:
        ArgumentError: The encoding changes texts before it splits them.
    """

    encoding: Encoding

    def __post_init__(self) -> None:
        if self.encoding._normalises:
            raise ArgumentError(
                f"`{self.encoding.name}` normalises texts, so its tokens are not pieces of "
                "them; choose an encoding that does not"
            )

    def starts(self, data: bytes) -> Tensor:
        """Return for each byte whether a patch begins with it, as bool of shape `(t,)`."""
        starts = torch.zeros(len(data), dtype=torch.bool)
        at = 0
        for text, size in _parts(data):
            if text is None:
                starts[at : at + size] = True
            else:
                found = self.encoding.encode_with_offsets(
                    text, disallowed_special=(), unit="byte"
                )[1]
                starts[at + torch.tensor(found, dtype=torch.int64)] = True
            at += size
        return starts


def _parts(data: bytes) -> list[tuple[str | None, int]]:
    """Stretches of UTF-8 as text, and others as None, each with its bytes."""
    parts: list[tuple[str | None, int]] = []
    at = 0
    while at < len(data):
        try:
            parts.append((data[at:].decode(), len(data) - at))
            break
        except UnicodeDecodeError as problem:
            if problem.start:
                parts.append((data[at : at + problem.start].decode(), problem.start))
            parts.append((None, problem.end - problem.start))
            at += problem.end
    return parts
