"""The centre of an image."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from hotgrid.data._plan import ColumnType, Operator, operator
from hotgrid.errors import ArgumentError, DamagedError

from ._checks import require_sizes


@operator("centre_crop")
@dataclass(frozen=True)
class CentreCrop(Operator):
    """Cut out the centre of an image. A smaller image is a damaged sample.

    Args:
        height: The height of the result.
        width: The width of the result.

    Raises:
        ArgumentError: A size is not possible.
    """

    inputs: ClassVar = {"image": "any"}
    height: int
    width: int

    def __post_init__(self) -> None:
        require_sizes(height=self.height, width=self.width)

    def outputs(self, types: Mapping[str, ColumnType]) -> dict[str, ColumnType]:
        """Return the type of the result.

        Raises:
            ArgumentError: The input has less than two axes, or is known to be smaller.
        """
        given = types["image"]
        if given.dtype is None or len(given.shape) < 2:
            raise ArgumentError(f"{given} is not an image, [height, width, ...]")
        for size, name in zip(given.shape, ("height", "width"), strict=False):
            if size is not None and size < getattr(self, name):
                raise ArgumentError(f"{given} is smaller than `{name}` {getattr(self, name)}")
        shape = (self.height, self.width, *given.shape[2:])
        return {"image": ColumnType(given.kind, shape)}

    def run(self, image: Any) -> Any:
        """Crop one image."""
        high, wide = image.shape[:2]
        if high < self.height or wide < self.width:
            raise DamagedError(f"{high}x{wide} pixels are less than {self.height}x{self.width}")
        top, left = (high - self.height) // 2, (wide - self.width) // 2
        return image[top : top + self.height, left : left + self.width]
