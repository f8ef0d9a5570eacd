"""Blur, noise and speckle."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from hotgrid.vision._augment._draws import BatchDraws
from hotgrid.vision._augment._stage import PixelStage, augment_stage, to_bytes


@augment_stage("gaussian_blur")
@dataclass(frozen=True)
class GaussianBlur(PixelStage):
    """Blur with a Gaussian of a drawn width; edges are mirrored.

    Args:
        sigma: The least and the greatest standard deviation, in pixels.
        radius: Pixels to each side that count; weights are divided by their sum.
    """

    sigma: tuple[float, float] = (0.1, 2.0)
    radius: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect_range("sigma", 1e-3)
        self._expect("radius", self.radius >= 1, "pixels, 1 or more")

    def pixels(self, images: Tensor, draws: BatchDraws) -> Tensor:
        """Return the changed images."""
        sigma = draws.uniform(low=self.sigma[0], high=self.sigma[1])[:, None]
        # A mirrored edge is shorter than the image.
        radius = min(self.radius, *(size - 1 for size in images.shape[2:]))
        place = torch.arange(-radius, radius + 1, device=images.device)
        weights = torch.exp(-0.5 * (place / sigma) ** 2)
        weights = (weights / weights.sum(1, keepdim=True))[:, :, None, None, None]
        height, width = images.shape[2:]
        wide = F.pad(images.to(torch.float32), (radius,) * 4, mode="reflect")
        rows = found = torch.zeros((), device=images.device)
        for k in range(2 * radius + 1):
            rows = rows + weights[:, k] * wide[:, :, k : k + height]
        for k in range(2 * radius + 1):
            found = found + weights[:, k] * rows[..., k : k + width]
        return to_bytes(found)


@augment_stage("gaussian_noise")
@dataclass(frozen=True)
class GaussianNoise(PixelStage):
    """Add normal noise to every pixel and channel.

    Args:
        std: The least and the greatest standard deviation, as a share of 255.
    """

    std: tuple[float, float] = (0.0, 0.1)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect_range("std", 0)

    def pixels(self, images: Tensor, draws: BatchDraws) -> Tensor:
        """Return the changed images."""
        std = draws.uniform(low=self.std[0], high=self.std[1])[:, None, None, None]
        return to_bytes(
            images.to(torch.float32) + 255.0 * std * draws.normal(*images.shape[1:])
        )


@augment_stage("speckle")
@dataclass(frozen=True)
class Speckle(PixelStage):
    """Replace some pixels by others from anywhere in the image.

    Args:
        density: The share of pixels that are replaced.
    """

    density: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect("density", 0 <= self.density <= 1, "a share from 0 to 1")

    def pixels(self, images: Tensor, draws: BatchDraws) -> Tensor:
        """Return the changed images."""
        size = images.shape[2] * images.shape[3]
        flat = images.flatten(2)
        other = draws.below(size, size)[:, None].expand(flat.shape)
        mine = (draws.uniform(size) < self.density)[:, None]
        return torch.where(mine, flat.gather(2, other), flat).view(images.shape)
