"""Bytes of an image file to a random crop, in one go."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hotgrid.data._plan import ColumnType, Operator, SampleDraws, operator

from ._checks import require_range, require_sizes
from ._pixels import MOST_PIXELS, Pixels, decoded, head_of, reduction_for, resized
from ._random_resized_crop import random_box


@operator("decode_random_crop")
@dataclass(frozen=True)
class DecodeRandomCrop(Operator):
    """Decode an image, crop a random part and resize it, straight into the batch.

    With `reduce=False` the pixels are those of `decode_image` and `random_resized_crop`.
    With it, a JPEG is decoded at a half, a quarter or an eighth of its size where the crop
    remains at least as large as the result; its edges are then rounded down to multiples of
    2, 4 or 8 pixels. Large photos are many times faster so.

    Args:
        height: The height of the result.
        width: The width of the result.
        area: The least and the largest share of the area.
        ratio: The least and the largest width over height.
        reduce: Decode at a smaller size where it suffices.
        fast: As of `decode_image`.
        antialias: As of `resize`.
        most_pixels: A larger image is refused before it is decoded.

    Raises:
        ArgumentError: A size or a range is not possible.
    """

    inputs: ClassVar = {"data": "bytes"}
    random = True
    fills = True
    height: int
    width: int
    area: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    reduce: bool = True
    fast: bool = False
    antialias: bool = True
    most_pixels: int = MOST_PIXELS

    def __post_init__(self) -> None:
        require_sizes(height=self.height, width=self.width)
        require_range("area", self.area, highest=1.0)
        require_range("ratio", self.ratio)

    def outputs(self, types: Mapping[str, ColumnType]) -> dict[str, ColumnType]:
        """Return the type of the crop."""
        return {"image": ColumnType("uint8", (self.height, self.width, 3))}

    def run(self, data: bytes, *, draws: SampleDraws, out: Pixels | None = None) -> Pixels:
        """Decode, crop and resize one file."""
        head = head_of(data, self.most_pixels)
        box = random_box(head.height, head.width, self.area, self.ratio, draws)
        size = (self.height, self.width)
        by = reduction_for(head, box[2:], size) if self.reduce else 1
        rows = box[0] + box[2]
        image = decoded(data, head, rows=rows, fast=self.fast, reduction=by, reuse=True)
        top, left, high, wide = (each // by for each in box)
        crop = image[top : top + high, left : left + wide]
        return resized(crop, *size, out, self.antialias)
