"""Contact sheets: many images on one."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ._augmentation import Augmentation
from ._draws import sample_keys
from ._stage import AugmentStage

_BETWEEN = 4
_PAPER = 250


def contact_sheet(images: Tensor, columns: int) -> Tensor:
    """Return images side by side, in rows, as one of `[height, width, 3]` uint8.

    Args:
        images: uint8 `[count, channels, height, width]`; one channel is shown as grey.
        columns: How many are in a row.

    Example:
        >>> contact_sheet(torch.zeros(5, 1, 8, 8, dtype=torch.uint8), 3).shape
        torch.Size([28, 40, 3])
    """
    count, _, height, width = images.shape
    rows = math.ceil(count / columns)
    tall, wide = height + _BETWEEN, width + _BETWEEN
    sheet = torch.full(
        (rows * tall + _BETWEEN, columns * wide + _BETWEEN, 3), _PAPER, dtype=torch.uint8
    )
    for number, image in enumerate(images.cpu()):
        top = _BETWEEN + number // columns * tall
        left = _BETWEEN + number % columns * wide
        colours = image[:3] if len(image) >= 3 else image[:1].expand(3, -1, -1)
        sheet[top : top + height, left : left + width] = colours.permute(1, 2, 0)
    return sheet


def augmented_rows(images: Tensor, stage: AugmentStage, versions: int, seed: int = 0) -> Tensor:
    """Return every image, each followed by augmented versions of it.

    What a normalising stage makes is stretched back to bytes.

    Args:
        images: uint8 `[count, channels, height, width]`.
        stage: The augmentation.
        versions: How many versions of each.
        seed: The seed of the random numbers.
    """
    count = len(images)
    augment = Augmentation(stage, classes=max(1, count))
    index = torch.arange(count, device=images.device)
    found = [images]
    for epoch in range(versions):
        made = augment(images, index, keys=sample_keys(seed, epoch, index)).images
        found.append(_bytes(made))
    return torch.stack(found, 1).flatten(0, 1)


def _bytes(images: Tensor) -> Tensor:
    if not images.is_floating_point():
        return images
    low, high = images.amin((1, 2, 3), keepdim=True), images.amax((1, 2, 3), keepdim=True)
    return ((images - low) / (high - low).clamp(min=1e-6) * 255.0).to(torch.uint8)


def sample_images(count: int = 4, size: int = 96) -> Tensor:
    """Return synthetic pictures: coloured shapes on a gradient."""
    made: Sequence[np.ndarray] = [_picture(number, size) for number in range(count)]
    return torch.from_numpy(np.stack(made)).permute(0, 3, 1, 2).contiguous()


def _picture(number: int, size: int) -> np.ndarray:
    y, x = np.mgrid[:size, :size] / size
    turn = number * 0.7
    base = np.stack((x, y, 0.5 + 0.5 * np.cos(6 * (x - y) + turn)), -1) * 160 + 40
    disc = (x - 0.35) ** 2 + (y - 0.4) ** 2 < 0.05 + 0.01 * number
    bar = abs((x - 0.6) * np.cos(turn) + (y - 0.6) * np.sin(turn)) < 0.06
    base[disc] = np.roll((230, 60, 40), number)
    base[bar] = np.roll((30, 90, 220), number)
    return base.astype(np.uint8)
