"""Operations that are a table of 256 bytes for each channel, as Pillow computes them."""

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError


def grey(images: Tensor) -> Tensor:
    """Luma as Pillow's mode L, `[batch, 1, height, width]` int32."""
    if images.shape[1] == 1:
        return images.to(torch.int32)
    r, g, b = colours(images.to(torch.int32))
    return (r * 19595 + g * 38470 + b * 7471 + 0x8000 >> 16)[:, None]


def colours(images: Tensor) -> tuple[Tensor, ...]:
    """Red, green and blue of images `[batch, 3, height, width]`.

    Raises:
        ArgumentError: The images have other channels.
    """
    if images.shape[1] != 3:
        raise ArgumentError(
            f"the images have {images.shape[1]} channels, and a stage changes their colours; "
            "expected 3, or 1 for grey"
        )
    return images.unbind(1)


def blended(base: Tensor, values: Tensor, factor: Tensor) -> Tensor:
    """`base + factor * (values - base)`, cut to a byte without rounding, as Image.blend."""
    base, values = base.to(torch.float32), values.to(torch.float32)
    return (base + factor * (values - base)).clamp(0.0, 255.0).to(torch.uint8)


class Tables:
    """Makes tables `[batch, channels or 1, 256]` uint8 for a batch of images."""

    def __init__(self, images: Tensor) -> None:
        self._images = images
        self.identity = torch.arange(256, device=images.device, dtype=torch.int32)

    def brightness(self, factor: Tensor) -> Tensor:
        """Towards black, or away from it."""
        return blended(torch.zeros_like(self.identity), self.identity, _shaped(factor))

    def contrast(self, factor: Tensor) -> Tensor:
        """Towards the mean grey of the image, or away from it."""
        luma = grey(self._images).flatten(1).sum(1, dtype=torch.int64)
        size = self._images.shape[2] * self._images.shape[3]
        mean = _shaped((2 * luma + size) // (2 * size))
        return blended(mean, self.identity, _shaped(factor))

    def invert(self, _: Tensor) -> Tensor:
        """The negative."""
        return (255 - self.identity).to(torch.uint8)

    def posterize(self, bits: Tensor) -> Tensor:
        """The highest bits alone."""
        step = 2 ** (8 - _shaped(bits).to(torch.int32).clamp(1, 8))
        return (self.identity // step * step).to(torch.uint8)

    def solarize(self, threshold: Tensor) -> Tensor:
        """The negative of values that are at least as bright as the threshold."""
        dark = self.identity < _shaped(threshold)
        return torch.where(dark, self.identity, 255 - self.identity).to(torch.uint8)

    def solarize_add(self, amount: Tensor) -> Tensor:
        """Brighten values below 128 by an amount."""
        more = (self.identity + _shaped(amount).to(torch.int32)).clamp(max=255)
        return torch.where(self.identity < 128, more, self.identity).to(torch.uint8)

    def autocontrast(self, _: Tensor) -> Tensor:
        """Each channel stretched to 0 to 255."""
        # Halves of ties fall as in Pillow only with its float64.
        low = self._images.amin((2, 3)).to(torch.float64)[..., None]
        high = self._images.amax((2, 3)).to(torch.float64)[..., None]
        # Not `255.0 / x`, which torch computes as the reciprocal times 255.
        scale = torch.full_like(low, 255.0) / (high - low).clamp(min=1.0)
        stretched = self.identity * scale + -low * scale
        found = torch.where(high > low, stretched, self.identity.to(torch.float64))
        return found.clamp(0.0, 255.0).to(torch.uint8)

    def equalize(self, _: Tensor) -> Tensor:
        """Each channel with a histogram as even as can be."""
        flat = self._images.flatten(2).to(torch.int64)
        ones = torch.ones((), dtype=torch.int32, device=flat.device).expand(flat.shape)
        counts = torch.zeros((*flat.shape[:2], 256), dtype=torch.int32, device=flat.device)
        counts = counts.scatter_add(2, flat, ones)
        last = counts.gather(2, flat.amax(2, keepdim=True))
        step = (flat.shape[2] - last) // 255
        before = counts.cumsum(2, dtype=torch.int32) - counts
        even = (step // 2 + before) // step.clamp(min=1)
        found = torch.where(step > 0, even, self.identity)
        return found.clamp(max=255).to(torch.uint8)


def looked_up(images: Tensor, table: Tensor) -> Tensor:
    """Images with every byte replaced by that of its channel's table."""
    flat = images.flatten(2)
    table = table.expand(*images.shape[:2], 256)
    return table.gather(2, flat.to(torch.int64)).view(images.shape)


def _shaped(values: Tensor) -> Tensor:
    return values[:, None, None]
