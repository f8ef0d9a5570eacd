"""`Mlp`: the two linear maps of a transformer block, under the names of timm's weights."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class GlobalResponseNorm(nn.Module):
    """Scale each channel by its share of the whole map's energy (arXiv 2301.00808).

    Args:
        dim: Channels.
        channels: Which dimension they are: -1 or 1.
        eps: Added to the mean energy.
    """

    def __init__(self, dim: int, *, channels: int = -1, eps: float = 1e-6) -> None:
        super().__init__()
        self.channels, self.eps = channels, eps
        self.weight = nn.Parameter(torch.zeros(dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def reset_parameters(self) -> None:
        """Set both to 0, so that it starts as an identity."""
        nn.init.zeros_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Scale channels; the input is added."""
        pixels = (1, 2) if self.channels == -1 else (2, 3)
        shape = (-1,) if self.channels == -1 else (-1, 1, 1)
        energy = x.norm(p=2, dim=pixels, keepdim=True)
        share = energy / (energy.mean(dim=self.channels, keepdim=True) + self.eps)
        return x + self.bias.view(shape) + self.weight.view(shape) * (x * share)


class Mlp(nn.Module):
    """`fc2(gelu(fc1(x)))`, over the last dimension or, as 1 x 1 convolutions, the second.

    Args:
        dim: Channels, before and after.
        hidden: Channels in between.
        conv: Whether the maps are convolutions.
        grn: Whether there is a `GlobalResponseNorm` after the activation.
    """

    def __init__(self, dim: int, hidden: int, *, conv: bool = False, grn: bool = False) -> None:
        super().__init__()
        linear: Callable[[int, int], nn.Module] = (
            partial(nn.Conv2d, kernel_size=1) if conv else nn.Linear
        )
        self.fc1 = linear(dim, hidden)
        channels = 1 if conv else -1
        self.grn = GlobalResponseNorm(hidden, channels=channels) if grn else nn.Identity()
        self.fc2 = linear(hidden, dim)

    def forward(self, x: Tensor) -> Tensor:
        """Map the channels."""
        return self.fc2(self.grn(F.gelu(self.fc1(x))))
