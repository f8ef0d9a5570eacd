"""Single operations of Pillow's ImageOps and ImageEnhance, for all samples alike."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from hotgrid.vision._augment._draws import BatchDraws
from hotgrid.vision._augment._engine import PixelOp, operate
from hotgrid.vision._augment._stage import PixelStage, augment_stage


class _Tone(PixelStage):
    """A stage that is one operation; `argument` is drawn or fixed."""

    op: ClassVar[PixelOp]

    def argument(self, draws: BatchDraws) -> Tensor:
        return torch.zeros_like(draws.keys, dtype=torch.float32)

    def pixels(self, images: Tensor, draws: BatchDraws) -> Tensor:
        """Return the changed images."""
        op = torch.full_like(draws.keys, int(self.op))
        return operate(images, op, self.argument(draws), (self.op,))


@augment_stage("solarize")
@dataclass(frozen=True)
class Solarize(_Tone):
    """Invert what is at least as bright as a threshold.

    Args:
        threshold: The lowest and the highest threshold that is drawn.
    """

    op: ClassVar[PixelOp] = PixelOp.SOLARIZE
    threshold: tuple[float, float] = (128.0, 128.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect_range("threshold", 0, 256)

    def argument(self, draws: BatchDraws) -> Tensor:
        """Return the threshold of each sample."""
        return draws.uniform(low=self.threshold[0], high=self.threshold[1]).floor()


@augment_stage("posterize")
@dataclass(frozen=True)
class Posterize(_Tone):
    """Keep the highest bits of every byte.

    Args:
        bits: The fewest and the most bits that are drawn.
    """

    op: ClassVar[PixelOp] = PixelOp.POSTERIZE
    bits: tuple[int, int] = (4, 4)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect_range("bits", 1, 8)

    def argument(self, draws: BatchDraws) -> Tensor:
        """Return the bits of each sample."""
        least, most = self.bits
        return (least + draws.below(most - least + 1)).to(torch.float32)


@augment_stage("sharpness")
@dataclass(frozen=True)
class Sharpness(_Tone):
    """Smooth, by a factor below 1, or sharpen, by one above.

    Args:
        factor: The lowest and the highest factor that is drawn.
    """

    op: ClassVar[PixelOp] = PixelOp.SHARPNESS
    factor: tuple[float, float] = (0.1, 1.9)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect_range("factor", 0)

    def argument(self, draws: BatchDraws) -> Tensor:
        """Return the factor of each sample."""
        return draws.uniform(low=self.factor[0], high=self.factor[1])


@augment_stage("autocontrast")
@dataclass(frozen=True)
class AutoContrast(_Tone):
    """Stretch each channel to the whole range of a byte."""

    op: ClassVar[PixelOp] = PixelOp.AUTOCONTRAST


@augment_stage("equalize")
@dataclass(frozen=True)
class Equalize(_Tone):
    """Make the histogram of each channel even."""

    op: ClassVar[PixelOp] = PixelOp.EQUALIZE


@augment_stage("invert")
@dataclass(frozen=True)
class Invert(_Tone):
    """The negative."""

    op: ClassVar[PixelOp] = PixelOp.INVERT
