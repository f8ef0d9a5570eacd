"""Two samples in one image, with shares of both classes."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.vision._augment._draws import BatchDraws
from hotgrid.vision._augment._stage import AugmentStage, ImageBatch, augment_stage, to_bytes

from ._erasing import rectangle


@dataclass(frozen=True)
class _Mixing(AugmentStage):
    """Every sample is mixed with the one half a batch before it."""

    alpha: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect("alpha", self.alpha > 0, "a number above 0")

    @property
    def mixes(self) -> bool:
        """True."""
        return True

    def _targets(self, targets: Tensor | None, share: Tensor) -> Tensor | None:
        if targets is None:
            return None
        if targets.ndim != 2:
            raise ArgumentError(
                f"stage `{self.name}` mixes shares of classes [batch, classes], and targets "
                f"are {list(targets.shape)}; use `Augmentation(stage, classes=...)`"
            )
        return share[:, None] * targets + (1.0 - share[:, None]) * _partners(targets)


def _partners(values: Tensor) -> Tensor:
    """Those half a batch before; neighbours are often the same sample, seen repeatedly."""
    return values.roll(len(values) // 2, 0)


@augment_stage("mixup")
@dataclass(frozen=True)
class MixUp(_Mixing):
    """Add a share of another sample, drawn from Beta(alpha, alpha).

    The other is the sample half a batch before it, so this alone depends on the batch.

    Args:
        alpha: The parameter of the beta distribution; a smaller one mixes less.
    """

    alpha: float = 0.8

    def apply(self, batch: ImageBatch, draws: BatchDraws) -> ImageBatch:
        """Return the changed batch."""
        share = draws.beta(self.alpha)
        part = share[:, None, None, None]
        floats = batch.images.to(torch.promote_types(batch.images.dtype, torch.float32))
        mixed = part * floats + (1.0 - part) * _partners(floats)
        bytes_wanted = not batch.images.is_floating_point()
        images = to_bytes(mixed) if bytes_wanted else mixed.to(batch.images.dtype)
        return ImageBatch(images, self._targets(batch.targets, share))


@augment_stage("cutmix")
@dataclass(frozen=True)
class CutMix(_Mixing):
    """Replace a rectangle by that of another sample; its share is that of the pixels.

    The other is the sample half a batch before it, as of `MixUp`.

    Args:
        alpha: The share that stays is drawn from Beta(alpha, alpha).
    """

    def apply(self, batch: ImageBatch, draws: BatchDraws) -> ImageBatch:
        """Return the changed batch."""
        height, width = batch.images.shape[2:]
        side = (1.0 - draws.beta(self.alpha)).sqrt()
        tall, wide = (side * height).floor(), (side * width).floor()
        top = draws.below(height) - (tall / 2).floor()
        left = draws.below(width) - (wide / 2).floor()
        inside = rectangle(batch.images, top, left, tall, wide)
        images = torch.where(inside, _partners(batch.images), batch.images)
        share = 1.0 - inside.to(torch.float32).mean((1, 2, 3))
        return ImageBatch(images, self._targets(batch.targets, share))
