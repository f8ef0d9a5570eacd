"""Evaluation of a model: accuracy, confusion, and its worst mistakes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from hotgrid.errors import ArgumentError

from ._column import ColumnBatches, StreamedImages
from ._folder import ImageModel

# How many of the worst samples are kept.
_WORST = 24


@dataclass(frozen=True)
class WrongSample:
    """A sample with a high loss.

    Attributes:
        index: Its number in the held-out images.
        label: The class it is of.
        found: The class that the model gives it.
        share: How sure the model is of that, from 0 to 1.
        loss: Its cross entropy.
    """

    index: int
    label: str
    found: str
    share: float
    loss: float


@dataclass(frozen=True)
class ImageScore:
    """How good a model is.

    Attributes:
        count: How many images.
        accuracy: The share whose class has the highest score.
        top5: The share whose class is among the five highest.
        loss: The mean cross entropy.
        confusion: How often a class (row) was taken for another (column), int64.
        worst: The samples with the highest losses.
        worst_images: Their images, uint8.
    """

    count: int
    accuracy: float
    top5: float
    loss: float
    confusion: Tensor
    worst: tuple[WrongSample, ...]
    worst_images: Tensor

    def figures(self) -> dict[str, Any]:
        """Return the numbers, as JSON."""
        return {
            "count": self.count,
            "accuracy": self.accuracy,
            "top5": self.top5,
            "loss": self.loss,
        }


@torch.no_grad()
def score_images(
    made: ImageModel, batches: ColumnBatches | StreamedImages, *, flip: bool = False
) -> ImageScore:
    """Evaluate a model on one pass over images.

    Args:
        made: The model.
        batches: The images, in order.
        flip: Average the scores of each image and its mirror image.

    Example:
        >>> net = create_model("resnet18_cifar", num_classes=2).eval()
        >>> made = ImageModel(net, ("a", "b"), NormalisePixels(), size=8)
        >>> images = torch.zeros(3, 3, 8, 8, dtype=torch.uint8)
        >>> column = ColumnBatches(images, torch.tensor([0, 1, 1]), 2, training=False)
        >>> score_images(made, column).count
        3
    """
    device = next(made.model.parameters()).device
    classes = len(made.classes)
    confusion = torch.zeros(classes * classes, dtype=torch.int64, device=device)
    hits = torch.zeros(2, dtype=torch.int64, device=device)
    total = torch.zeros((), dtype=torch.float64, device=device)
    worst: tuple[Tensor, ...] | None = None
    count = 0
    for number in range(len(batches)):
        batch = batches.batch(number)
        images, labels = batch.images.to(device), batch.labels.to(device)
        scores = made.scores(images, flip=flip)
        losses = F.cross_entropy(scores, labels, reduction="none")
        share, found = scores.softmax(1).max(1)
        best = scores.topk(min(5, classes), 1).indices
        confusion += torch.bincount(labels * classes + found, minlength=classes * classes)
        hits += torch.stack(((found == labels).sum(), (best == labels[:, None]).sum()))
        total += losses.double().sum()
        index = torch.arange(count, count + len(labels), device=device)
        count += len(labels)
        worst = _worst(worst, (losses, index, labels, found, share, images))
    if worst is None:
        raise ArgumentError("there are no images to evaluate on")
    values = zip(*(each.tolist() for each in worst[:5]), strict=True)
    samples = tuple(
        WrongSample(int(i), made.classes[int(a)], made.classes[int(b)], float(p), float(loss))
        for loss, i, a, b, p in values
    )
    accuracy, top5 = (hits.double() / count).tolist()
    matrix = confusion.view(classes, classes).cpu()
    mean = float(total) / count
    return ImageScore(count, accuracy, top5, mean, matrix, samples, worst[5].cpu())


def _worst(kept: tuple[Tensor, ...] | None, now: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The samples with the highest losses of both."""
    both = now if kept is None else tuple(map(torch.cat, zip(kept, now, strict=True)))
    order = both[0].topk(min(_WORST, len(both[0]))).indices
    return tuple(each[order] for each in both)
