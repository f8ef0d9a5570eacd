"""Operations that move every pixel towards another image, or away from it."""

import torch
import torch.nn.functional as F
from torch import Tensor

from ._tables import blended, grey


def colour(images: Tensor, factor: Tensor) -> Tensor:
    """Towards grey, or away from it."""
    return blended(grey(images), images, factor[:, None, None, None])


def sharpness(images: Tensor, factor: Tensor) -> Tensor:
    """Towards Pillow's SMOOTH filter, or away from it."""
    return blended(_smooth(images), images, factor[:, None, None, None])


def _smooth(images: Tensor) -> Tensor:
    """Means of 3 by 3 pixels, the middle one five times; pixels at the edge as they are."""
    height, width = images.shape[2:]
    if height < 3 or width < 3:
        return images
    wide = images.to(torch.int32)
    total = 4 * wide[:, :, 1:-1, 1:-1]
    for y in range(3):
        for x in range(3):
            total = total + wide[:, :, y : height - 2 + y, x : width - 2 + x]
    inner = F.pad((2 * total + 13) // 26, (1, 1, 1, 1))
    rows = torch.arange(height, device=images.device)[:, None]
    columns = torch.arange(width, device=images.device)
    edge = (rows == 0) | (rows == height - 1) | (columns == 0) | (columns == width - 1)
    return torch.where(edge, wide, inner)
