"""Looking numbers up in a table, cell by cell."""

from collections.abc import Sequence

import torch
from torch import Tensor


def looked_up(table: Sequence[int], place: Tensor) -> Tensor:
    """The entry of a table of bytes for every cell, uint8 `[*space]`."""
    entries = torch.tensor(table, dtype=torch.uint8, device=place.device)
    return torch.take(entries, place.long())
