"""Bytes of an image file to its centre, as evaluation wants it, in one go."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hotgrid.data._plan import ColumnType, Operator, operator
from hotgrid.errors import ArgumentError

from ._checks import require_sizes
from ._pixels import MOST_PIXELS, Pixels, decoded, head_of, reduction_for, resized


@operator("decode_centre_crop")
@dataclass(frozen=True)
class DecodeCentreCrop(Operator):
    """Decode an image and resize the largest centred part of the aspect ratio asked for.

    `share=0.875` crops 224 of 256, as ImageNet is evaluated. Only what remains is resized,
    so nothing is computed twice; against resizing first, edges differ by less than a pixel.

    Args:
        height: The height of the result.
        width: The width of the result.
        share: The share of the height and width of that part which is kept, about its centre.
        reduce: Decode a JPEG at a smaller size where it suffices.
        fast: As of `decode_image`.
        antialias: As of `resize`.
        most_pixels: A larger image is refused before it is decoded.

    Raises:
        ArgumentError: A size or the share is not possible.
    """

    inputs: ClassVar = {"data": "bytes"}
    fills = True
    height: int
    width: int
    share: float = 0.875
    reduce: bool = True
    fast: bool = False
    antialias: bool = True
    most_pixels: int = MOST_PIXELS

    def __post_init__(self) -> None:
        require_sizes(height=self.height, width=self.width)
        if not 0 < self.share <= 1:
            raise ArgumentError(f"`share` {self.share} is not above 0 and at most 1")

    def outputs(self, types: Mapping[str, ColumnType]) -> dict[str, ColumnType]:
        """Return the type of the crop."""
        return {"image": ColumnType("uint8", (self.height, self.width, 3))}

    def run(self, data: bytes, *, out: Pixels | None = None) -> Pixels:
        """Decode, crop and resize one file."""
        head = head_of(data, self.most_pixels)
        scale = min(head.height / self.height, head.width / self.width) * self.share
        high = max(1, min(head.height, round(self.height * scale)))
        wide = max(1, min(head.width, round(self.width * scale)))
        size = (self.height, self.width)
        by = reduction_for(head, (high, wide), size) if self.reduce else 1
        tall, broad = -(-head.height // by), -(-head.width // by)
        high, wide = high // by, wide // by
        top, left = (tall - high) // 2, (broad - wide) // 2
        rows = min(head.height, (top + high) * by)
        image = decoded(data, head, rows=rows, fast=self.fast, reduction=by, reuse=True)
        crop = image[top : top + high, left : left + wide]
        return resized(crop, *size, out, self.antialias)
