"""Flips, and crops after padding."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from hotgrid.vision._augment._draws import BatchDraws
from hotgrid.vision._augment._stage import ImageStage, augment_stage


@augment_stage("horizontal_flip")
@dataclass(frozen=True)
class HorizontalFlip(ImageStage):
    """Swap left and right.

    Args:
        prob: How likely.
    """

    prob: float = 0.5

    def images(self, images: Tensor, draws: BatchDraws) -> Tensor:
        """Return the changed images."""
        mine = draws.chance(self.prob)[:, None, None, None]
        return torch.where(mine, images.flip(3), images)


@augment_stage("vertical_flip")
@dataclass(frozen=True)
class VerticalFlip(ImageStage):
    """Swap top and bottom.

    Args:
        prob: How likely.
    """

    prob: float = 0.5

    def images(self, images: Tensor, draws: BatchDraws) -> Tensor:
        """Return the changed images."""
        mine = draws.chance(self.prob)[:, None, None, None]
        return torch.where(mine, images.flip(2), images)


@augment_stage("alternate_flip")
@dataclass(frozen=True)
class AlternateFlip(ImageStage):
    """Swap left and right in every other epoch, of a random half of the samples first.

    A sample is seen in both ways in any two epochs in a row. The training needs to know the
    epoch of a sample: where it does not, this is `HorizontalFlip`.
    """

    def images(self, images: Tensor, draws: BatchDraws) -> Tensor:
        """Return the changed images."""
        turn = draws.turn()
        return torch.where(turn[:, None, None, None], images.flip(3), images)


@augment_stage("pad_crop")
@dataclass(frozen=True)
class PadCrop(ImageStage):
    """Pad on all sides and cut out at a random place: a shift by whole pixels.

    Args:
        padding: Pixels on each side.
        mode: What is padded with: mirrored pixels, zeros, or the pixel at the edge.
    """

    padding: int = 4
    mode: Literal["reflect", "zero", "edge"] = "reflect"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect("padding", self.padding >= 0, "pixels, 0 or more")

    def images(self, images: Tensor, draws: BatchDraws) -> Tensor:
        """Return the changed images."""
        height, width = images.shape[2:]
        rows, good_rows = self._places(draws, height, images.device)
        columns, good_columns = self._places(draws, width, images.device)
        found = images.gather(2, rows[:, None, :, None].expand(images.shape))
        found = found.gather(3, columns[:, None, None, :].expand(images.shape))
        if self.mode != "zero":
            return found
        good = good_rows[:, None, :, None] & good_columns[:, None, None, :]
        return torch.where(good, found, 0)

    def _places(
        self, draws: BatchDraws, size: int, device: torch.device
    ) -> tuple[Tensor, Tensor]:
        """Where each row comes from, and whether it is inside the image."""
        shift = draws.below(2 * self.padding + 1) - self.padding
        place = torch.arange(size, device=device) + shift[:, None]
        inside = (place >= 0) & (place < size)
        if self.mode == "reflect" and size > 1:
            # A period of a mirrored axis: 0 1 2 3 2 1.
            place = (place % (2 * size - 2) - (size - 1)).abs()
            return size - 1 - place, inside
        return place.clamp(0, size - 1), inside
