"""From bytes to numbers around zero."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.vision._augment._draws import BatchDraws
from hotgrid.vision._augment._stage import ImageStage, augment_stage

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@augment_stage("normalise_pixels")
@dataclass(frozen=True)
class NormalisePixels(ImageStage):
    """Subtract a mean and divide by a standard deviation; bytes are divided by 255 before.

    Args:
        mean: The mean of each channel, or one number for all; by default that of ImageNet.
        std: The standard deviation, likewise.
    """

    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect("std", all(each > 0 for each in self.std), "numbers above 0")

    def images(self, images: Tensor, draws: BatchDraws) -> Tensor:
        """Return the changed images."""
        mean, std = (_channels(each, images) for each in (self.mean, self.std))
        if images.is_floating_point():
            return (images - mean) / std
        return (images.to(torch.float32) - 255.0 * mean) / (255.0 * std)


def _channels(values: tuple[float, ...], images: Tensor) -> Tensor:
    if len(values) not in (1, images.shape[1]):
        raise ArgumentError(
            f"`normalise_pixels` has {len(values)} values, and images have {images.shape[1]} "
            "channels; give one for each, or one for all"
        )
    dtype = images.dtype if images.is_floating_point() else torch.float32
    made = [torch.full((), v, dtype=dtype, device=images.device) for v in values]
    return torch.stack(made)[:, None, None]
