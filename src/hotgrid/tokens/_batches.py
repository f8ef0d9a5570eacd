"""Many texts in one array."""

import itertools
from typing import TYPE_CHECKING, Literal, NamedTuple

from hotgrid.errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class FlatBatch(NamedTuple):
    """Tokens of many texts, one after another.

    Example:
        >>> import numpy as np
        >>> batch = FlatBatch(np.array([7, 8, 9], np.uint32), np.array([0, 2, 3]))
        >>> [row.tolist() for row in batch.rows()]
        [[7, 8], [9]]
    """

    tokens: "npt.NDArray[np.uint32]"
    """`uint32[tokens]`"""
    offsets: "npt.NDArray[np.int64]"
    """`int64[texts + 1]`: where each text begins, and the end."""

    def rows(self) -> "list[npt.NDArray[np.uint32]]":
        """The tokens of each text, as views."""
        ends = self.offsets.tolist()
        return [self.tokens[a:b] for a, b in itertools.pairwise(ends)]


class PaddedBatch(NamedTuple):
    """Tokens of many texts as rows of the same length.

    Example:
        >>> import numpy as np
        >>> batch = PaddedBatch(np.array([[7, 8], [9, 0]], np.uint32), np.array([2, 1]))
        >>> batch.tokens[1, : batch.lengths[1]].tolist()
        [9]
    """

    tokens: "npt.NDArray[np.uint32]"
    """`uint32[texts, length]`"""
    lengths: "npt.NDArray[np.int64]"
    """`int64[texts]`: how many tokens of each row are not padding."""


def padded(
    flat: FlatBatch, pad_token: int, length: int | None, side: Literal["left", "right"]
) -> PaddedBatch:
    """Rows of one length from a flat batch.

    Raises:
        ArgumentError: An argument is out of range.
    """
    import numpy as np

    if side not in ("left", "right"):
        raise ArgumentError(f"`side` must be 'left' or 'right', got {side!r}")
    if not isinstance(pad_token, (int, np.integer)) or not 0 <= pad_token < 2**32:
        raise ArgumentError(f"`pad_token` must be a token, got {pad_token!r}")
    if length is not None and not isinstance(length, (int, np.integer)):
        raise ArgumentError(f"`length` must be a number of tokens, got {length!r}")
    if length is not None and length < 0:
        raise ArgumentError(f"`length` must not be negative, got {length}")
    sizes = np.diff(flat.offsets)
    width = int(sizes.max(initial=0)) if length is None else length
    lengths = np.minimum(sizes, width)
    places = np.arange(width)
    if side == "left":
        filled = places >= width - lengths[:, None]
        within = places - (width - lengths[:, None])
    else:
        filled = places < lengths[:, None]
        within = np.broadcast_to(places, filled.shape)
    tokens = np.full((len(sizes), width), pad_token, dtype=np.uint32)
    tokens[filled] = flat.tokens[(flat.offsets[:-1, None] + within)[filled]]
    return PaddedBatch(tokens, lengths)
