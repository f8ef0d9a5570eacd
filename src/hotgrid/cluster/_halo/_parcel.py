"""`Parcel`: pieces of several tensors in one contiguous run of bytes."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ._trips import Region

# Enough for every dtype to be viewed in place.
_ALIGNMENT = 16


class Parcel:
    """A buffer for one region of several tensors, some of their components left out.

    Args:
        tensors: Whose dtypes, device and dims before the space are taken,
            `[*batch, components, *space]`.
        region: The cells; only how many there are counts here.
        components: For each tensor those that are carried, or None for all.
    """

    def __init__(
        self,
        tensors: Sequence[Tensor],
        region: Region,
        components: Sequence[Sequence[int] | None],
    ) -> None:
        cells = [each.stop - each.start for each in region]
        shapes, begins, end = [], [], 0
        for x, chosen in zip(tensors, components, strict=True):
            before = list(x.shape[: x.ndim - len(cells)])
            if chosen is not None:
                before[-1] = len(chosen)
            shapes.append((*before, *cells))
            begins.append(-(-end // _ALIGNMENT) * _ALIGNMENT)
            end = begins[-1] + math.prod(shapes[-1]) * x.element_size()
        device = tensors[0].device
        self.bytes = torch.empty(end, dtype=torch.uint8, device=device)
        self._parts = [
            self.bytes[begin : begin + math.prod(shape) * x.element_size()]
            .view(x.dtype)
            .view(shape)
            for x, shape, begin in zip(tensors, shapes, begins, strict=True)
        ]
        self._chosen = [
            None if each is None else torch.tensor(each, dtype=torch.int64, device=device)
            for each in components
        ]
        self._component = -len(cells) - 1

    def pack(self, tensors: Sequence[Tensor], region: Region) -> None:
        """Copy a region of the tensors in."""
        for x, part, chosen in zip(tensors, self._parts, self._chosen, strict=True):
            cells = x[(..., *region)]
            if chosen is None:
                part.copy_(cells)
            else:
                torch.index_select(cells, self._component, chosen, out=part)

    def unpack(self, tensors: Sequence[Tensor], region: Region) -> None:
        """Copy what is inside out to a region of the tensors."""
        for x, part, chosen in zip(tensors, self._parts, self._chosen, strict=True):
            cells = x[(..., *region)]
            if chosen is None:
                cells.copy_(part)
            else:
                cells.index_copy_(self._component, chosen, part)

    def add(self, tensors: Sequence[Tensor], region: Region) -> None:
        """Add what is inside to a region of the tensors."""
        for x, part, chosen in zip(tensors, self._parts, self._chosen, strict=True):
            cells = x[(..., *region)]
            if chosen is None:
                cells.add_(part)
            else:
                cells.index_add_(self._component, chosen, part)
