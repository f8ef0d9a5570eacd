"""Rectangles that are erased."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from hotgrid.vision._augment._draws import BatchDraws
from hotgrid.vision._augment._stage import ImageStage, augment_stage

# Rectangles are drawn until one fits, as published, but at most so often.
_ATTEMPTS = 10


@augment_stage("random_erasing")
@dataclass(frozen=True)
class RandomErasing(ImageStage):
    """Erase a rectangle of random size, shape and place.

    Args:
        prob: How likely.
        mode: Fill it with noise, a number for each pixel, or with `value`. Noise is normal on
            floats, which are taken to be normalised, and uniform on bytes.
        area: The least and the greatest share of the image.
        aspect: The least and the greatest ratio of height to width.
        value: What `const` fills with.
    """

    prob: float = 0.25
    mode: Literal["pixel", "const"] = "pixel"
    area: tuple[float, float] = (0.02, 1 / 3)
    aspect: tuple[float, float] = (0.3, 1 / 0.3)
    value: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect_range("area", 0, 1)
        self._expect_range("aspect", 1e-6)

    def images(self, images: Tensor, draws: BatchDraws) -> Tensor:
        """Return the changed images."""
        height, width = images.shape[2:]
        mine = draws.chance(self.prob)
        area = draws.uniform(_ATTEMPTS, low=self.area[0], high=self.area[1]) * height * width
        low, high = (math.log(each) for each in self.aspect)
        aspect = torch.exp(draws.uniform(_ATTEMPTS, low=low, high=high))
        tall, wide = (area * aspect).sqrt().round(), (area / aspect).sqrt().round()
        fits = (tall < height) & (wide < width)
        first = fits.to(torch.int32).argmax(1, keepdim=True)
        tall, wide = tall.gather(1, first)[:, 0], wide.gather(1, first)[:, 0]
        mine = mine & fits.any(1)
        top = (draws.uniform() * (height - tall + 1)).floor()
        left = (draws.uniform() * (width - wide + 1)).floor()
        inside = rectangle(images, top, left, tall, wide) & mine[:, None, None, None]
        return torch.where(inside, self._filling(images, draws), images)

    def _filling(self, images: Tensor, draws: BatchDraws) -> Tensor:
        if self.mode == "const":
            return torch.full((), self.value, device=images.device).to(images.dtype)
        if images.is_floating_point():
            return draws.normal(*images.shape[1:]).to(images.dtype)
        return draws.below(256, *images.shape[1:]).to(images.dtype)


@augment_stage("cutout")
@dataclass(frozen=True)
class Cutout(ImageStage):
    """Erase a square whose centre is anywhere in the image.

    Args:
        size: Its side, in pixels.
        value: What it is filled with.
    """

    size: int = 8
    value: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect("size", self.size >= 1, "pixels, 1 or more")

    def images(self, images: Tensor, draws: BatchDraws) -> Tensor:
        """Return the changed images."""
        height, width = images.shape[2:]
        side = torch.full_like(draws.keys, self.size)
        top, left = draws.below(height) - self.size // 2, draws.below(width) - self.size // 2
        inside = rectangle(images, top, left, side, side)
        value = torch.full((), self.value, device=images.device).to(images.dtype)
        return torch.where(inside, value, images)


def rectangle(images: Tensor, top: Tensor, left: Tensor, tall: Tensor, wide: Tensor) -> Tensor:
    """Where a rectangle of each sample is, `[batch, 1, height, width]`."""
    rows = torch.arange(images.shape[2], device=images.device)
    columns = torch.arange(images.shape[3], device=images.device)
    down = (rows >= top[:, None]) & (rows < (top + tall)[:, None])
    across = (columns >= left[:, None]) & (columns < (left + wide)[:, None])
    return (down[:, :, None] & across[:, None, :])[:, None]
