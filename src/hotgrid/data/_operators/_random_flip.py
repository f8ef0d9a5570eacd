"""Images flipped left to right at random."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hotgrid.data._plan import ColumnType, Operator, SampleDraws, operator
from hotgrid.errors import ArgumentError


@operator("random_flip")
@dataclass(frozen=True)
class RandomFlip(Operator):
    """Flip an image left to right with some probability. On a GPU, flip there instead.

    Args:
        probability: How often.

    Raises:
        ArgumentError: It is not a probability.
    """

    inputs: ClassVar = {"image": "any"}
    random = True
    fills = True
    probability: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise ArgumentError(f"`probability` {self.probability} is not from 0 to 1")

    def outputs(self, types: Mapping[str, ColumnType]) -> dict[str, ColumnType]:
        """Return the type of the input.

        Raises:
            ArgumentError: The input has less than two axes.
        """
        if types["image"].dtype is None or len(types["image"].shape) < 2:
            raise ArgumentError(f"{types['image']} is not an image, [height, width, ...]")
        return {"image": types["image"]}

    def run(self, image: Any, *, draws: SampleDraws, out: Any = None) -> Any:
        """Flip one image or leave it."""
        if draws.uniform() >= self.probability:
            return image
        if out is None:
            return np.ascontiguousarray(image[:, ::-1])
        # Faster than copying a view with a negative step.
        places = np.arange(image.shape[1] - 1, -1, -1)
        return np.take(image, places, axis=1, out=out, mode="clip")
