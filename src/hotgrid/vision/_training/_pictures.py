"""Pictures of a result: the confusion matrix, the worst samples, predictions."""

from __future__ import annotations

import io
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ._evaluate import ImageScore

# Above this names of classes would not be legible.
_NAMED = 40
_NUMBERED = 20
# Names are no formulas: two dollar signs would begin and end one.
_LABEL = MappingProxyType({"fontsize": 8, "parse_math": False})


def confusion_picture(score: ImageScore, classes: Sequence[str]) -> bytes:
    """Draw the confusion matrix as PNG: rows are classes, columns what they were taken for."""
    shares = score.confusion.double() / score.confusion.sum(1, keepdim=True).clamp(min=1)
    count = len(classes)
    side = min(12.0, 2.5 + 0.45 * count)
    figure, axes = _figure(side, side)
    axes.imshow(shares.numpy(), cmap="Blues", vmin=0, vmax=1)
    if count <= _NAMED:
        names = [_drawable(each) for each in classes]
        axes.set_xticks(range(count), names, rotation=60, ha="right", **_LABEL)
        axes.set_yticks(range(count), names, **_LABEL)
    if count <= _NUMBERED:
        for row in range(count):
            for column in range(count):
                if number := int(score.confusion[row, column]):
                    dark = shares[row, column] > 0.5
                    axes.text(
                        column, row, str(number), ha="center", va="center", fontsize=7,
                        color="white" if dark else "0.2",
                    )  # fmt: skip
    axes.set_xlabel("found")
    axes.set_ylabel("is")
    axes.set_title(f"{score.accuracy:.2%} of {score.count:,} right", fontsize=10)
    return _png(figure)


def worst_picture(score: ImageScore) -> bytes:
    """Draw the samples with the highest losses as PNG."""
    titles = [f"{each.label}\nnot {each.found}" for each in score.worst]
    sure = [each.found == each.label for each in score.worst]
    return tiles(score.worst_images, titles, sure)


def tiles(
    images: Tensor, titles: Sequence[str], good: Sequence[bool], columns: int = 8
) -> bytes:
    """Draw images with titles as PNG; those that are not good have a red title."""
    from matplotlib.figure import Figure

    columns = min(columns, max(1, len(images)))
    rows = -(-len(images) // columns)
    figure = Figure(figsize=(1.6 * columns, 2.0 * rows), layout="constrained")
    every = np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel()
    for axes in every:
        axes.set_axis_off()
    for axes, image, title, right in zip(every, images, titles, good, strict=False):
        pixels = image.permute(1, 2, 0).numpy()
        grey = pixels.shape[2] == 1
        axes.imshow(pixels[..., 0] if grey else pixels, cmap="gray" if grey else None)
        axes.set_title(_drawable(title), color="0.2" if right else "tab:red", **_LABEL)
    return _png(figure)


def prediction_picture(images: Tensor, names: Sequence[str], rows: Sequence[Any]) -> bytes:
    """Draw images with their likeliest classes as PNG."""
    titles = [
        f"{name[:22]}\n" + "\n".join(f"{share:.0%} {what}" for what, share in row[:3])
        for name, row in zip(names, rows, strict=True)
    ]
    return tiles(torch.as_tensor(images), titles, [True] * len(titles), columns=4)


def _drawable(name: str) -> str:
    """A name without what fonts refuse: the bytes of file names that are not UTF-8."""
    return name.encode("utf-8", "replace").decode("utf-8")


def _figure(width: float, height: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def _png(figure: Any) -> bytes:
    held = io.BytesIO()
    figure.savefig(held, format="png", dpi=110)
    return held.getvalue()
