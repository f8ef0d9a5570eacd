"""Which patch each byte belongs to, and which one it may read."""

from typing import NamedTuple

import torch
from torch import Tensor

from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError


class PatchIndex(NamedTuple):
    """Patches by byte.

    Attributes:
        own: The patch of each byte; the number of patches for bytes beyond all of them.
        read: The last patch that ends before the next byte begins, which the decoder reads.
        patches: How many patches there are in the longest row.
    """

    own: Tensor
    read: Tensor
    patches: int


@checked(lengths="b p")
def patch_index(lengths: Tensor, ids: int) -> PatchIndex:
    """Return the patches of `ids` bytes a row.

    Args:
        lengths: Lengths of patches; zeros on the right fill rows. The first is 1, for the
            beginning-of-sequence token, so that no byte reads a patch that holds the next one.
        ids: How many ids a row has.

    Raises:
        ArgumentError: A first length is not 1.
    """
    if not torch.compiler.is_compiling() and bool((lengths[:, 0] != 1).any()):
        raise ArgumentError(
            f"the first patches have the lengths {lengths[:, 0].unique().tolist()}; expected 1 "
            "in each row, the beginning-of-sequence token, as the decoder would see bytes early"
        )
    ends = lengths.cumsum(1)
    places = torch.arange(ids, device=lengths.device).expand(len(lengths), -1).contiguous()
    own = torch.searchsorted(ends, places, right=True)
    read = torch.searchsorted((ends[:, 1:] - 1).contiguous(), places, right=True)
    last = (lengths > 0).sum(1, keepdim=True) - 2
    return PatchIndex(own, read.minimum(last).clamp(min=0), lengths.shape[1])
