"""Brightness, contrast, saturation, hue; grey."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hotgrid.vision._augment._draws import BatchDraws
from hotgrid.vision._augment._engine import PixelOp, colours, grey, operate
from hotgrid.vision._augment._stage import PixelStage, augment_stage


@augment_stage("colour_jitter")
@dataclass(frozen=True)
class ColourJitter(PixelStage):
    """Change brightness, contrast, saturation and hue, in this order.

    The first three are the factors of Pillow's ImageEnhance, drawn from `1 - x` to `1 + x`.
    The hue turns by a share of the circle from `-hue` to `hue`, in Pillow's mode HSV.

    Args:
        brightness: How far the factor of brightness is from 1 at most.
        contrast: The same of contrast.
        saturation: The same of colour.
        hue: At most 0.5, half of the circle.
    """

    brightness: float = 0.4
    contrast: float = 0.4
    saturation: float = 0.4
    hue: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("brightness", "contrast", "saturation"):
            self._expect(name, getattr(self, name) >= 0, "0 or more")
        self._expect("hue", 0 <= self.hue <= 0.5, "a share from 0 to 0.5")

    def pixels(self, images: Tensor, draws: BatchDraws) -> Tensor:
        """Return the changed images."""
        coloured = images.shape[1] == 3
        for op, most in (
            (PixelOp.BRIGHTNESS, self.brightness),
            (PixelOp.CONTRAST, self.contrast),
            (PixelOp.COLOUR, self.saturation if coloured else 0.0),
        ):
            factor = draws.uniform(low=max(0.0, 1 - most), high=1 + most)
            if most:
                images = operate(images, torch.full_like(draws.keys, int(op)), factor, (op,))
        if self.hue and coloured:
            images = hue_turned(images, draws.uniform(low=-self.hue, high=self.hue))
        return images


@augment_stage("grayscale")
@dataclass(frozen=True)
class Grayscale(PixelStage):
    """Make images grey, as Pillow's mode L, in as many channels as before.

    Args:
        prob: How likely.
    """

    prob: float = 0.1

    def pixels(self, images: Tensor, draws: BatchDraws) -> Tensor:
        """Return the changed images."""
        mine = draws.chance(self.prob)[:, None, None, None]
        return torch.where(mine, grey(images).to(torch.uint8), images)


def hue_turned(images: Tensor, turn: Tensor) -> Tensor:
    """Images with the hue of Pillow's HSV turned by a share of the circle."""
    hue, saturation, value = _hsv(images)
    hue = (hue + (turn * 255.0).to(torch.int32)[:, None, None]) & 255
    return _rgb(hue, saturation, value)


def _hsv(images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hue, saturation and value from 0 to 255, int32, as Pillow rounds them."""
    r, g, b = colours(images.to(torch.float32))
    high, low = images.amax(1).to(torch.float32), images.amin(1).to(torch.float32)
    span = (high - low).clamp(min=1.0)
    rc, gc, bc = (high - r) / span, (high - g) / span, (high - b) / span
    hue = torch.where(r == high, bc - gc, torch.where(g == high, 2.0 + rc - bc, 4.0 + gc - rc))
    # Fractions are cut off, so rounding matters: these steps are Pillow's, in its precision.
    hue = ((hue.to(torch.float64) / 6.0 + 1.0) % 1.0).to(torch.float32).to(torch.float64)
    coloured = high > low
    hue = torch.where(coloured, hue * 255.0, 0.0).to(torch.int32)
    share = (span / high.clamp(min=1.0)).to(torch.float64)
    saturation = torch.where(coloured, share * 255.0, 0.0)
    return hue, saturation.to(torch.int32), high.to(torch.int32)


def _rgb(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    sixths = hue.to(torch.float32) * 6.0 / 255.0
    sector = sixths.floor()
    part = sixths - sector
    share, v = saturation.to(torch.float32) / 255.0, value.to(torch.float32)
    p = (v * (1.0 - share)).round()
    q = (v * (1.0 - share * part)).round()
    t = (v * (1.0 - share * (1.0 - part))).round()
    which = sector.to(torch.int64) % 6
    # What red, green and blue are in each sixth of the circle.
    kinds = torch.stack((v, q, p, p, t, v), 1)
    turns = [kinds.gather(1, ((which + shift) % 6)[:, None]).squeeze(1) for shift in (0, 4, 2)]
    return torch.stack(turns, 1).clamp(0.0, 255.0).to(torch.uint8)
