"""Boxes of a tensor: where they overlap, and whether they cover the whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class Region(NamedTuple):
    """A box of a larger tensor: where it begins, and how large it is."""

    offset: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def cells(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def end(self) -> tuple[int, ...]:
        """One past the last element, in each dim."""
        return tuple(map(sum, zip(self.offset, self.shape, strict=True)))

    def overlap(self, other: Region) -> Region | None:
        """The overlap, or None."""
        start = tuple(map(max, zip(self.offset, other.offset, strict=True)))
        end = tuple(map(min, zip(self.end, other.end, strict=True)))
        if any(a >= b for a, b in zip(start, end, strict=True)):
            return None
        return Region(start, tuple(b - a for a, b in zip(start, end, strict=True)))

    def within(self, outer: Region) -> tuple[slice, ...]:
        """The slices that cut this region out of the tensor that holds `outer`."""
        starts = [a - b for a, b in zip(self.offset, outer.offset, strict=True)]
        return tuple(slice(a, a + n) for a, n in zip(starts, self.shape, strict=True))

    def __str__(self) -> str:
        return "[" + ", ".join(map("{}:{}".format, self.offset, self.end)) + "]"


def whole(shape: Sequence[int]) -> Region:
    """All of a tensor."""
    return Region((0,) * len(shape), tuple(shape))


def fault_in_cover(shape: Sequence[int], regions: Sequence[Region]) -> str | None:
    """Return why regions do not cover a tensor without gaps and overlaps, or None.

    Empty regions are ignored.
    """
    regions = [region for region in regions if region.cells]
    if pair := _overlapping(regions):
        return f"the pieces {pair[0]} and {pair[1]} overlap"
    covered, cells = sum(region.cells for region in regions), math.prod(shape)
    if covered != cells:
        return f"the pieces hold {covered} of its {cells} elements"
    return None


def _overlapping(regions: Sequence[Region]) -> tuple[Region, Region] | None:
    if len(regions) < 2:
        return None
    # Sweep along the dim that separates most regions, so that few must be compared.
    dims = range(len(regions[0].offset))
    axis = max(
        dims, key=lambda dim: len({region.offset[dim] for region in regions}), default=-1
    )
    if axis < 0:  # two scalars
        return regions[0], regions[1]
    ordered = sorted(regions, key=lambda region: region.offset[axis])
    open_regions: list[Region] = []
    for region in ordered:
        open_regions = [o for o in open_regions if o.end[axis] > region.offset[axis]]
        for other in open_regions:
            if other.overlap(region):
                return other, region
        open_regions.append(region)
    return None
