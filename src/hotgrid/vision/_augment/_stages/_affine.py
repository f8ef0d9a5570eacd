"""Rotations, shears and shifts."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hotgrid.vision._augment._draws import BatchDraws
from hotgrid.vision._augment._engine import PixelOp, operate
from hotgrid.vision._augment._engine._operate import Fill
from hotgrid.vision._augment._engine._warp import Interpolation
from hotgrid.vision._augment._stage import PixelStage, augment_stage


@dataclass(frozen=True)
class _Affine(PixelStage):
    interpolation: Interpolation = "bilinear"
    fill: Fill = (128,)

    def _warped(
        self, images: Tensor, op: PixelOp, argument: Tensor, draws: BatchDraws
    ) -> Tensor:
        cubic = draws.chance(0.5) if self.interpolation == "random" else None
        ops = torch.full_like(draws.keys, int(op))
        return operate(
            images,
            ops,
            argument,
            (op,),
            interpolation=self.interpolation,
            fill=self.fill,
            cubic=cubic,
        )


@augment_stage("rotate")
@dataclass(frozen=True)
class Rotate(_Affine):
    """Turn the image about its centre.

    Args:
        interpolation: Between pixels: nearest, bilinear, bicubic, or random of the last two.
        fill: The value outside of the image: a byte, or one for each channel.
        degrees: The angle, counter-clockwise, is drawn from `-degrees` to `degrees`.
    """

    degrees: float = 30.0

    def pixels(self, images: Tensor, draws: BatchDraws) -> Tensor:
        """Return the changed images."""
        angle = draws.uniform(low=-self.degrees, high=self.degrees)
        return self._warped(images, PixelOp.ROTATE, angle, draws)


@augment_stage("shear")
@dataclass(frozen=True)
class Shear(_Affine):
    """Shear along both axes.

    Args:
        interpolation: Between pixels: nearest, bilinear, bicubic, or random of the last two.
        fill: The value outside of the image: a byte, or one for each channel.
        x: The slope along x is drawn from `-x` to `x`.
        y: The same along y.
    """

    x: float = 0.3
    y: float = 0.3

    def pixels(self, images: Tensor, draws: BatchDraws) -> Tensor:
        """Return the changed images."""
        for op, most in ((PixelOp.SHEAR_X, self.x), (PixelOp.SHEAR_Y, self.y)):
            if most:
                slope = draws.uniform(low=-most, high=most)
                images = self._warped(images, op, slope, draws)
        return images


@augment_stage("translate")
@dataclass(frozen=True)
class Translate(_Affine):
    """Shift along both axes, also by parts of a pixel.

    Args:
        interpolation: Between pixels: nearest, bilinear, bicubic, or random of the last two.
        fill: The value outside of the image: a byte, or one for each channel.
        x: The shift along x, as a share of the width, is drawn from `-x` to `x`.
        y: The same along y.
    """

    x: float = 0.1
    y: float = 0.1

    def pixels(self, images: Tensor, draws: BatchDraws) -> Tensor:
        """Return the changed images."""
        height, width = images.shape[2:]
        for op, most in (
            (PixelOp.TRANSLATE_X, self.x * width),
            (PixelOp.TRANSLATE_Y, self.y * height),
        ):
            if most:
                shift = draws.uniform(low=-most, high=most)
                images = self._warped(images, op, shift, draws)
        return images
