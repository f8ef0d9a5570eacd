"""Random crops of an image, resized."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hotgrid.data._plan import ColumnType, Operator, SampleDraws, operator

from ._checks import require_range, require_sizes
from ._pixels import Pixels, resized


@operator("random_resized_crop")
@dataclass(frozen=True)
class RandomResizedCrop(Operator):
    """Crop a random part of an image and resize it, bilinear.

    The part has a random share of the area and a random aspect ratio, whose logarithm is
    uniform; if ten such parts do not fit, it is the largest centred one that does. This is
    the definition of torchvision's `RandomResizedCrop`.

    Args:
        height: The height of the result.
        width: The width of the result.
        area: The least and the largest share of the area.
        ratio: The least and the largest width over height.
        antialias: False resizes without antialiasing, by OpenCV (`hotgrid[opencv]`): twice as
            fast, with moiré where an image shrinks much.

    Raises:
        ArgumentError: A size or a range is not possible.
    """

    inputs: ClassVar = {"image": "uint8[?,?,3]"}
    random = True
    fills = True
    height: int
    width: int
    area: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    antialias: bool = True

    def __post_init__(self) -> None:
        require_sizes(height=self.height, width=self.width)
        require_range("area", self.area, highest=1.0)
        require_range("ratio", self.ratio)

    def outputs(self, types: Mapping[str, ColumnType]) -> dict[str, ColumnType]:
        """Return the type of the crop."""
        return {"image": ColumnType("uint8", (self.height, self.width, 3))}

    def run(self, image: Pixels, *, draws: SampleDraws, out: Pixels | None = None) -> Pixels:
        """Crop and resize one image."""
        height, width = image.shape[:2]
        top, left, high, wide = random_box(height, width, self.area, self.ratio, draws)
        crop = image[top : top + high, left : left + wide]
        return resized(crop, self.height, self.width, out, self.antialias)


def random_box(
    height: int,
    width: int,
    area: tuple[float, float],
    ratio: tuple[float, float],
    draws: SampleDraws,
) -> tuple[int, int, int, int]:
    """A random part of an image: top, left, height, width."""
    low, high = math.log(ratio[0]), math.log(ratio[1])
    for _ in range(10):
        target = height * width * draws.uniform(*area)
        aspect = math.exp(draws.uniform(low, high))
        w, h = round(math.sqrt(target * aspect)), round(math.sqrt(target / aspect))
        if 0 < w <= width and 0 < h <= height:
            return draws.below(height - h + 1), draws.below(width - w + 1), h, w
    w, h = width, height
    if width / height < ratio[0]:
        h = max(1, min(height, round(width / ratio[0])))
    elif width / height > ratio[1]:
        w = max(1, min(width, round(height * ratio[1])))
    return (height - h) // 2, (width - w) // 2, h, w
