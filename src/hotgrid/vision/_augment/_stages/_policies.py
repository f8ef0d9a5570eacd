"""RandAugment, TrivialAugment and AugMix: operations drawn from a table, with strengths."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from hotgrid.vision._augment._draws import BatchDraws
from hotgrid.vision._augment._engine import PixelOp, operate
from hotgrid.vision._augment._engine._operate import Fill
from hotgrid.vision._augment._engine._warp import Interpolation
from hotgrid.vision._augment._stage import PixelStage, augment_stage, to_bytes

# From a level (0 to 1, [batch]), a sign and the size of images to the argument of `operate`.
_Argument = Callable[[Tensor, Tensor, int], Tensor]
# Pairs and no mapping: Dynamo traces no mapping whose keys are an enumeration.
_Table = tuple[tuple[PixelOp, _Argument], ...]


def _factor(level: Tensor, sign: Tensor, _: int) -> Tensor:
    return (1.0 + 0.9 * level * sign).clamp(min=0.1)


def _nothing(level: Tensor, sign: Tensor, _: int) -> Tensor:
    return torch.zeros_like(level)


# What timm means by `inc1`: a higher level always changes more.
_RAND: _Table = tuple(
    {
        PixelOp.AUTOCONTRAST: _nothing,
        PixelOp.EQUALIZE: _nothing,
        PixelOp.INVERT: _nothing,
        PixelOp.ROTATE: lambda level, sign, _: 30.0 * level * sign,
        PixelOp.POSTERIZE: lambda level, sign, _: 4.0 - (4.0 * level).floor(),
        PixelOp.SOLARIZE: lambda level, sign, _: 256.0 - (256.0 * level).floor(),
        PixelOp.SOLARIZE_ADD: lambda level, sign, _: (110.0 * level).floor(),
        PixelOp.COLOUR: _factor,
        PixelOp.CONTRAST: _factor,
        PixelOp.BRIGHTNESS: _factor,
        PixelOp.SHARPNESS: _factor,
        PixelOp.SHEAR_X: lambda level, sign, _: 0.3 * level * sign,
        PixelOp.SHEAR_Y: lambda level, sign, _: 0.3 * level * sign,
        PixelOp.TRANSLATE_X: lambda level, sign, size: 0.45 * size * level * sign,
        PixelOp.TRANSLATE_Y: lambda level, sign, size: 0.45 * size * level * sign,
    }.items()
)


def _wide(level: Tensor, sign: Tensor, _: int) -> Tensor:
    return 1.0 + 0.99 * level * sign


_TRIVIAL: _Table = tuple(
    {
        PixelOp.IDENTITY: _nothing,
        PixelOp.SHEAR_X: lambda level, sign, _: 0.99 * level * sign,
        PixelOp.SHEAR_Y: lambda level, sign, _: 0.99 * level * sign,
        PixelOp.TRANSLATE_X: lambda level, sign, _: (32.0 * level * sign).trunc(),
        PixelOp.TRANSLATE_Y: lambda level, sign, _: (32.0 * level * sign).trunc(),
        PixelOp.ROTATE: lambda level, sign, _: 135.0 * level * sign,
        PixelOp.BRIGHTNESS: _wide,
        PixelOp.COLOUR: _wide,
        PixelOp.CONTRAST: _wide,
        PixelOp.SHARPNESS: _wide,
        PixelOp.POSTERIZE: lambda level, sign, _: 8.0 - (6.0 * level).round(),
        PixelOp.SOLARIZE: lambda level, sign, _: 255.0 - 255.0 * level,
        PixelOp.AUTOCONTRAST: _nothing,
        PixelOp.EQUALIZE: _nothing,
    }.items()
)

_AUGMIX: _Table = tuple(
    {
        PixelOp.AUTOCONTRAST: _nothing,
        PixelOp.EQUALIZE: _nothing,
        PixelOp.POSTERIZE: lambda level, sign, _: 4.0 - (4.0 * level).floor(),
        PixelOp.ROTATE: lambda level, sign, _: (30.0 * level).floor() * sign,
        PixelOp.SOLARIZE: lambda level, sign, _: 256.0 - (256.0 * level).floor(),
        PixelOp.SHEAR_X: lambda level, sign, _: 0.3 * level * sign,
        PixelOp.SHEAR_Y: lambda level, sign, _: 0.3 * level * sign,
        PixelOp.TRANSLATE_X: lambda level, sign, size: (size / 3 * level).floor() * sign,
        PixelOp.TRANSLATE_Y: lambda level, sign, size: (size / 3 * level).floor() * sign,
    }.items()
)


@dataclass(frozen=True)
class _Policy(PixelStage):
    interpolation: Interpolation = "nearest"
    fill: Fill = (128,)

    def _drawn(
        self, images: Tensor, table: _Table, level: Tensor, keep: Tensor, draws: BatchDraws
    ) -> Tensor:
        """Images with an operation of the table each, except where they are kept."""
        sign, pick = draws.sign(), draws.below(len(table))
        cubic = draws.chance(0.5) if self.interpolation == "random" else None
        op = torch.zeros_like(pick)
        argument = torch.zeros_like(level)
        for number, (each, argument_of) in enumerate(table):
            mine = pick == number
            op = torch.where(mine, int(each), op)
            size = images.shape[2 if each == PixelOp.TRANSLATE_Y else 3]
            argument = torch.where(mine, argument_of(level, sign, size), argument)
        op = torch.where(keep, int(PixelOp.IDENTITY), op)
        among = [each for each, _ in table if images.shape[1] == 3 or each != PixelOp.COLOUR]
        return operate(
            images,
            op,
            argument,
            among,
            interpolation=self.interpolation,
            fill=self.fill,
            cubic=cubic,
        )


@augment_stage("rand_augment")
@dataclass(frozen=True)
class RandAugment(_Policy):
    """Apply a few operations of about one strength; timm's `rand-m9-mstd0.5-inc1`.

    Args:
        interpolation: Between pixels: nearest, bilinear, bicubic, or random of the last two.
        fill: The value outside of the image: a byte, or one for each channel.
        layers: How many operations in turn.
        magnitude: Their strength, from 0 to 10.
        std: The strength is drawn from a normal distribution of this width, and cut.
        prob: How likely each of them is applied.
    """

    interpolation: Interpolation = "random"
    layers: int = 2
    magnitude: float = 9.0
    std: float = 0.5
    prob: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect("layers", self.layers >= 1, "1 or more")
        self._expect("magnitude", 0 <= self.magnitude <= 10, "a number from 0 to 10")

    def pixels(self, images: Tensor, draws: BatchDraws) -> Tensor:
        """Return the changed images."""
        for _ in range(self.layers):
            keep = ~draws.chance(self.prob)
            level = (self.magnitude + self.std * draws.normal()).clamp(0.0, 10.0) / 10.0
            images = self._drawn(images, _RAND, level, keep, draws)
        return images


@augment_stage("trivial_augment")
@dataclass(frozen=True)
class TrivialAugment(_Policy):
    """Apply one operation of any strength: TrivialAugment, with its wide ranges.

    Args:
        interpolation: Between pixels: nearest, bilinear, bicubic, or random of the last two.
        fill: The value outside of the image: a byte, or one for each channel.
        bins: How many strengths there are.
    """

    fill: Fill = (0,)
    bins: int = 31

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect("bins", self.bins >= 2, "2 or more")

    def pixels(self, images: Tensor, draws: BatchDraws) -> Tensor:
        """Return the changed images."""
        level = draws.below(self.bins).to(torch.float32) / (self.bins - 1)
        keep = torch.zeros_like(level, dtype=torch.bool)
        return self._drawn(images, _TRIVIAL, level, keep, draws)


@augment_stage("augmix")
@dataclass(frozen=True)
class AugMix(_Policy):
    """Mix the image with a mean of chains of operations (alpha is 1, as published).

    Args:
        interpolation: Between pixels: nearest, bilinear, bicubic, or random of the last two.
        fill: The value outside of the image: a byte, or one for each channel.
        severity: The highest strength, up to 10.
        width: How many chains.
        depth: The most operations of a chain; how many is drawn.
    """

    interpolation: Interpolation = "bilinear"
    severity: float = 3.0
    width: int = 3
    depth: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect("severity", 0.1 <= self.severity <= 10, "a number from 0.1 to 10")
        self._expect("width", self.width >= 1, "1 or more")
        self._expect("depth", self.depth >= 1, "1 or more")

    def pixels(self, images: Tensor, draws: BatchDraws) -> Tensor:
        """Return the changed images."""
        # Shares of chains: exponential numbers divided by their sum are Dirichlet's.
        shares = -torch.log(draws.uniform(self.width) + 2.0**-25)
        shares = shares / shares.sum(1, keepdim=True)
        total = torch.zeros((), device=images.device)
        for chain in range(self.width):
            length = draws.below(self.depth) + 1
            made = images
            for place in range(self.depth):
                level = draws.uniform(low=0.1, high=self.severity) / 10.0
                made = self._drawn(made, _AUGMIX, level, length <= place, draws)
            total = total + shares[:, chain, None, None, None] * made.to(torch.float32)
        share = draws.uniform()[:, None, None, None]
        return to_bytes((1.0 - share) * images.to(torch.float32) + share * total)
