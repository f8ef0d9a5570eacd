"""`fast_resnet`: a small residual network that learns images of 32 pixels in seconds.

It follows ResNet-9 and airbench: few wide layers, all of them large matrix
products; a first layer that whitens patches and is not trained; and convolutions that begin as
an identity.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError

from ._config import ModelConfig
from ._model import VisionModel, new_head

_PATCH = 2


@dataclass(frozen=True, kw_only=True)
class FastResNetConfig(ModelConfig):
    """The shape of a fast ResNet.

    Args:
        dims: Channels of each stage; each halves height and width.
        convs: Convolutions of a stage: the first changes the channels, the others are a
            residual branch.
        momentum: Momentum of the running statistics of norms; large, since training is short.
        head_scale: The factor of the logits, which keeps them small at first.

    Raises:
        ArgumentError: A number is out of range.
    """

    family: ClassVar[str] = "fast_resnet"

    dims: tuple[int, ...] = (64, 256, 256)
    convs: int = 2
    momentum: float = 0.4
    head_scale: float = 1 / 9

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.convs < 1:
            raise ArgumentError(f"`convs` must be at least 1, got {self.convs}")
        smallest = 2 ** len(self.dims) + 1
        if self.image_size < smallest:
            raise ArgumentError(
                f"`image_size` {self.image_size}: {len(self.dims)} stages need {smallest} or "
                "more"
            )


class _Norm(nn.BatchNorm2d):
    """A batch norm whose gain stays 1: the next layer could undo it."""

    def __init__(self, dim: int, momentum: float) -> None:
        super().__init__(dim, momentum=momentum)
        self.weight.requires_grad_(False)


class _Stage(nn.Module):
    """A convolution, a pool, and a residual branch of convolutions."""

    def __init__(self, inner: int, dim: int, config: FastResNetConfig) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inner, dim, 3, padding=1, bias=False)
        self.norm = _Norm(dim, config.momentum)
        self.branch = nn.ModuleList()
        for _ in range(config.convs - 1):
            self.branch.append(nn.Conv2d(dim, dim, 3, padding=1, bias=False))
            self.branch.append(_Norm(dim, config.momentum))

    def forward(self, x: Tensor) -> Tensor:
        x = F.gelu(self.norm(F.max_pool2d(self.conv(x), 2)))
        if not len(self.branch):
            return x
        branch = x
        for each in self.branch:
            branch = each(branch)
            if isinstance(each, _Norm):
                branch = F.gelu(branch)
        return x + branch


class FastResNet(VisionModel):
    """A fast ResNet; see `FastResNetConfig`.

    Call `whiten` with some hundred training images before training.
    """

    config: FastResNetConfig
    head_name = "head"
    first_name = "whitening"
    block_types = (_Stage,)
    stem_at = r"whitening\."
    blocks_at = (r"layers\.(\d+)\.",)

    def __init__(self, config: FastResNetConfig) -> None:
        super().__init__(config, config.dims)
        # Each eigenvector, and its negative, since an activation follows.
        inner = 2 * config.in_chans * _PATCH**2
        self.whitening = nn.Conv2d(config.in_chans, inner, _PATCH)
        self.whitening.weight.requires_grad_(False)
        self.layers = nn.ModuleList()
        for dim in config.dims:
            self.layers.append(_Stage(inner, dim, config))
            inner = dim
        self.head = new_head(inner, config.num_classes)
        self.initialize()

    @torch.no_grad()
    def initialize(self) -> None:
        """Convolutions start by passing channels on; the first layer takes pixels apart."""
        for module in self.modules():
            if isinstance(module, nn.Conv2d) and module is not self.whitening:
                nn.init.kaiming_normal_(module.weight, nonlinearity="linear")
                same = min(module.in_channels, module.out_channels)
                nn.init.dirac_(module.weight[:same])
        basis = torch.eye(self.whitening.out_channels // 2, device=self.whitening.weight.device)
        self._set_whitening(basis)
        nn.init.zeros_(self._first_bias())

    def _first_bias(self) -> Tensor:
        bias = self.whitening.bias
        if bias is None:
            raise ArgumentError("the first layer of a fast ResNet has a bias")
        return bias

    def _set_whitening(self, rows: Tensor) -> None:
        filters = rows.reshape(len(rows), -1, _PATCH, _PATCH)
        self.whitening.weight.copy_(torch.cat((filters, -filters)))

    @torch.no_grad()
    @checked(images="batch in_chans height width", bind="self.config.in_chans")
    def whiten(self, images: Tensor, *, eps: float = 5e-4) -> None:
        """Set the first layer so that patches of these images become uncorrelated.

        Args:
            images: Some hundred images as the model gets them, normalised.
            eps: Added to the variance in each direction.
        """
        patches = F.unfold(images.double(), _PATCH).transpose(1, 2).flatten(0, 1)
        patches = patches - patches.mean(0)
        variances, vectors = torch.linalg.eigh(patches.T @ patches / len(patches))
        self._set_whitening((vectors / (variances + eps).sqrt()).T.flip(0))

    def stage_outputs(self, images: Tensor) -> list[Tensor]:
        """Return the map of each stage."""
        x = F.gelu(self.whitening(images))
        given: list[Tensor] = []
        for stage in self.layers:
            x = self.run((stage,), x)
            given.append(x)
        return given

    def pooled(self, last: Tensor) -> Tensor:
        """Return the largest value of each channel, scaled for small logits."""
        return last.amax((2, 3)) * self.config.head_scale


_CIFAR = {"image_size": 32, "num_classes": 10}

FAST_RESNETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "fast_resnet": _CIFAR,
        "fast_resnet_wide": {**_CIFAR, "dims": (128, 384, 512), "convs": 3},
    }
)
"""Sizes of the fast ResNet, by name."""
