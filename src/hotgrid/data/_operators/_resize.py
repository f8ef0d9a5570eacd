"""Images of another size."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hotgrid.data._plan import ColumnType, Operator, operator

from ._checks import require_sizes
from ._pixels import Pixels, resized


@operator("resize")
@dataclass(frozen=True)
class Resize(Operator):
    """Resize an image to an exact size, bilinear.

    Args:
        height: The height of the result.
        width: The width of the result.
        antialias: False resizes without antialiasing, by OpenCV (`hotgrid[opencv]`): twice as
            fast, with moiré where an image shrinks much.

    Raises:
        ArgumentError: A size is not possible.
    """

    inputs: ClassVar = {"image": "uint8[?,?,3]"}
    fills = True
    height: int
    width: int
    antialias: bool = True

    def __post_init__(self) -> None:
        require_sizes(height=self.height, width=self.width)

    def outputs(self, types: Mapping[str, ColumnType]) -> dict[str, ColumnType]:
        """Return the type of the result."""
        return {"image": ColumnType("uint8", (self.height, self.width, 3))}

    def run(self, image: Pixels, *, out: Pixels | None = None) -> Pixels:
        """Resize one image."""
        return resized(image, self.height, self.width, out, self.antialias)
