"""Stochastic depth and DropBlock: whole samples or blocks of pixels dropped in training."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError


def _expect_rate(rate: float) -> float:
    if not 0 <= rate < 1:
        raise ArgumentError(f"`rate` must be from 0 up to, not including, 1, got {rate}")
    return rate


class DropPath(nn.Module):
    """Set whole samples to 0 in training: stochastic depth, for the branch of a residual.

    Args:
        rate: The probability for each sample.
        scale: Whether what is kept is divided by `1 - rate`, which keeps the mean.

    Raises:
        ArgumentError: The rate is not in [0, 1).
    """

    def __init__(self, rate: float = 0.0, *, scale: bool = True) -> None:
        super().__init__()
        self.rate, self.scale = _expect_rate(rate), scale

    @checked(x="batch ...", returns="batch ...")
    def forward(self, x: Tensor) -> Tensor:
        """Drop samples; the input itself when not training."""
        if not self.training or self.rate == 0:
            return x
        kept = x.new_empty((len(x), *[1] * (x.ndim - 1))).bernoulli_(1 - self.rate)
        return x * (kept / (1 - self.rate) if self.scale else kept)

    def extra_repr(self) -> str:
        """Return the arguments."""
        return f"rate={self.rate:g}, scale={self.scale}"


def drop_path_rates(rate: float, blocks: int) -> list[float]:
    """Return the rate of each block: from 0 for the first, linearly to `rate` for the last.

    Example:
        >>> drop_path_rates(0.2, 3)
        [0.0, 0.1, 0.2]
    """
    return [_expect_rate(rate) * i / max(blocks - 1, 1) for i in range(blocks)]


class DropBlock2d(nn.Module):
    """Set square blocks of pixels to 0 in training, and scale the rest to keep the mean.

    Args:
        rate: About the share of pixels that is dropped.
        size: The height and width of a block; cut to the image where that is smaller.
        coupled: Whether all channels lose the same blocks.
        batchwise: Whether all samples lose the same blocks.
        edges: Whether blocks may reach over the edge of the image.

    Raises:
        ArgumentError: The rate is not in [0, 1), or the size is below 1.
    """

    def __init__(
        self,
        rate: float = 0.1,
        size: int = 7,
        *,
        coupled: bool = False,
        batchwise: bool = False,
        edges: bool = False,
    ) -> None:
        super().__init__()
        if size < 1:
            raise ArgumentError(f"`size` must be at least 1 pixel, got {size}")
        self.rate, self.size = _expect_rate(rate), size
        self.coupled, self.batchwise, self.edges = coupled, batchwise, edges

    @checked(x="batch channels height width", returns="batch channels height width")
    def forward(self, x: Tensor) -> Tensor:
        """Drop blocks; the input itself when not training."""
        if not self.training or self.rate == 0:
            return x
        kept = self.kept(x)
        return x * kept * (kept.numel() / (kept.sum(dtype=torch.float32) + 1e-7)).to(x.dtype)

    def kept(self, x: Tensor) -> Tensor:
        """Draw which pixels are kept, 1 or 0; sizes that share blocks are 1."""
        batch, channels, height, width = x.shape
        tall, wide = min(self.size, height), min(self.size, width)
        inner = (height - tall + 1) * (width - wide + 1)
        # A point drops about a block, so there are fewer points than pixels to drop.
        points = self.rate * height * width / (tall * wide) / inner
        shape = (1 if self.batchwise else batch, 1 if self.coupled else channels)
        where = (height, width) if self.edges else (height - tall + 1, width - wide + 1)
        drawn = torch.rand((*shape, *where), device=x.device) < points
        above, left = tall // 2, wide // 2
        if not self.edges:
            drawn = F.pad(drawn, (left, wide - 1 - left, above, tall - 1 - above))
        # The block of a point reaches `above` rows up and the rest down.
        grown = F.pad(drawn.to(x.dtype), (wide - 1 - left, left, tall - 1 - above, above))
        return 1 - F.max_pool2d(grown, (tall, wide), stride=1)

    def extra_repr(self) -> str:
        """Return the arguments."""
        return f"rate={self.rate:g}, size={self.size}"
