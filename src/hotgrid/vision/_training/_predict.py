"""Predict the classes of image files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from hotgrid.data import DecodeCentreCrop
from hotgrid.errors import ArgumentError
from hotgrid.files import read_regular

from ._folder import ImageModel

_LARGEST = 1 << 30


@dataclass(frozen=True)
class Prediction:
    """The prediction for a file.

    Attributes:
        file: The file.
        classes: The likeliest classes with their shares, the likeliest first.
    """

    file: str
    classes: tuple[tuple[str, float], ...]


def read_images(
    files: Sequence[str | Path], size: int, channels: int = 3, share: float = 1.0
) -> Tensor:
    """Decode image files to one size, uint8 `[count, channels, size, size]`.

    Args:
        files: The files.
        size: Height and width.
        channels: 3, or 1 for grey.
        share: The part of the height and width that is kept, about the centre.

    Raises:
        ArgumentError: No file is named, or one is missing.
        DamagedError: A file is not an image.
    """
    if not files:
        raise ArgumentError("name image files, such as photo.jpg")
    crop = DecodeCentreCrop(size, size, share=share)
    found = []
    for file in files:
        try:
            data = read_regular(Path(file), _LARGEST)
        except FileNotFoundError:
            raise ArgumentError(f"`{file}` is missing") from None
        try:
            pixels = crop.run(data)
        except ArgumentError:
            raise
        except Exception as problem:
            raise type(problem)(f"`{file}`: {problem}") from problem
        found.append(torch.from_numpy(np.ascontiguousarray(pixels)).permute(2, 0, 1))
    images = torch.stack(found)
    if channels == 1:
        wide = images.to(torch.float32)
        weights = torch.tensor((0.299, 0.587, 0.114))[:, None, None]
        images = (wide * weights).sum(1, keepdim=True).round().to(torch.uint8)
    return images


def predict_images(
    made: ImageModel, files: Sequence[str | Path], *, top: int = 5, flip: bool = False
) -> list[Prediction]:
    """Classify image files.

    Args:
        made: The model.
        files: The files.
        top: How many classes of each.
        flip: Average over the image and its mirror image.

    Raises:
        ArgumentError: No file is named, one is missing, or no class is asked for.
        DamagedError: A file is not an image.
    """
    if top < 1:
        raise ArgumentError(f"`top` is {top}; choose 1 or more classes")
    device = next(made.model.parameters()).device
    images = read_images(files, made.size, made.model.config.in_chans, made.share)
    found = []
    for file, image in zip(files, images, strict=True):
        shares = made.scores(image[None].to(device), flip=flip).softmax(1)[0]
        best = shares.topk(min(top, len(made.classes)))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        row = tuple((made.classes[place], share) for place, share in pairs)
        found.append(Prediction(str(file), row))
    return found
