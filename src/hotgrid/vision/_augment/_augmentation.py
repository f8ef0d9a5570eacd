"""`Augmentation`: a stage as one function of a batch, compiled or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from hotgrid.contracts import Contract
from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.files import read_regular, whole_file

from ._draws import BatchDraws
from ._stage import AugmentStage, ImageBatch

_IMAGES, _ROWS = Contract("batch channels height width"), Contract("batch ...")
_LARGEST = 1 << 20


class Augmentation:
    """A stage as a function of images, targets and keys; the same on every device.

    Args:
        stage: What is done.
        classes: How many classes there are; needed where samples are mixed.
        compiled: Compile it to a few kernels (`torch.compile`).

    Raises:
        ArgumentError: Samples are mixed and the number of classes is not given.

    Example:
        >>> images = torch.arange(48, dtype=torch.uint8).view(1, 3, 4, 4)
        >>> turned = Augmentation(HorizontalFlip(prob=1.0))
        >>> turned(images, keys=sample_keys(0, 0, torch.arange(1))).images[0, 0, 0].tolist()
        [3, 2, 1, 0]
    """

    def __init__(
        self, stage: AugmentStage, *, classes: int | None = None, compiled: bool = False
    ) -> None:
        if stage.mixes and classes is None:
            raise ArgumentError(
                f"stage `{stage.name}` mixes samples; say how many classes there are: "
                "`Augmentation(stage, classes=10)`"
            )
        self.stage, self.classes = stage, classes
        self._function = torch.compile(self._apply, fullgraph=True) if compiled else self._apply

    @torch.no_grad()
    def __call__(
        self, images: Tensor, targets: Tensor | None = None, *, keys: Tensor
    ) -> ImageBatch:
        """Return the changed images and targets.

        Args:
            images: `[batch, channels, height, width]`, uint8, or floats from 0 to 1.
            targets: Classes `[batch]`, or shares of classes `[batch, classes]`.
            keys: A number for each sample, as `sample_keys` makes them.

        Raises:
            ContractError: The images have another shape.
        """
        _IMAGES.check(images)
        for name, each in (("keys", keys), ("targets", targets)):
            if each is None:
                continue
            _ROWS.check(each)
            if len(each) != len(images):
                raise ArgumentError(f"there are {len(images)} images and {len(each)} {name}")
        return ImageBatch(*self._function(images, targets, keys))

    def _apply(
        self, images: Tensor, targets: Tensor | None, keys: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        if self.stage.mixes and targets is not None and targets.ndim == 1:
            targets = F.one_hot(targets, self.classes or 0).to(torch.float32)
        found = self.stage.apply(ImageBatch(images, targets), BatchDraws(keys))
        return found.images, found.targets


def write_augmentation(stage: AugmentStage, path: str | Path) -> None:
    """Write a stage as JSON.

    Raises:
        ArgumentError: The file cannot be written.
    """
    with whole_file(Path(path)) as aside:
        aside.write_text(json.dumps(stage.to_plain(), indent=2) + "\n", encoding="utf-8")


def read_augmentation(path: str | Path) -> AugmentStage:
    """Read a stage from a JSON file, as `write_augmentation` makes it.

    Raises:
        ArgumentError: It is not that of a stage.
        DamagedError: It is not JSON.

    Example:
        >>> write_augmentation(HorizontalFlip(prob=0.3), "flip.json")
        >>> read_augmentation("flip.json")
        HorizontalFlip(prob=0.3)
    """
    try:
        found: Any = json.loads(read_regular(Path(path), _LARGEST))
    except ValueError as problem:
        raise DamagedError(f"`{path}` is not JSON: {problem}") from None
    return AugmentStage.from_plain(found, f"`{path}`")
