"""Bytes of an image file to pixels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hotgrid.data._plan import ColumnType, Operator, operator

from ._pixels import MOST_PIXELS, Pixels, decoded, head_of


@operator("decode_image")
@dataclass(frozen=True)
class DecodeImage(Operator):
    """Decode an image file to RGB, uint8 `[height, width, 3]`.

    JPEG is decoded by simplejpeg where it is installed (`hotgrid[images]`), all else by
    Pillow. Both give the same pixels unless `fast`. Orientation tags are not applied.

    Args:
        fast: The fast inverse DCT of libjpeg, and colours without interpolation: about a
            tenth faster; brightness is off by a level or two, colours at edges by more.
            Needs simplejpeg.
        most_pixels: A larger image is refused before it is decoded.
    """

    inputs: ClassVar = {"data": "bytes"}
    fast: bool = False
    most_pixels: int = MOST_PIXELS

    def outputs(self, types: Mapping[str, ColumnType]) -> dict[str, ColumnType]:
        """Return the type of the pixels."""
        return {"image": ColumnType("uint8", (None, None, 3))}

    def run(self, data: bytes) -> Pixels:
        """Decode one file."""
        return decoded(data, head_of(data, self.most_pixels), fast=self.fast)
