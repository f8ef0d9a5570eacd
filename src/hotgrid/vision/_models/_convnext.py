"""ConvNeXt (arXiv 2201.03545) and ConvNeXt v2 (arXiv 2301.00808)."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from hotgrid.errors import ArgumentError
from hotgrid.nn import DropPath, LayerNorm, drop_path_rates
from hotgrid.vision._layers._mlp import Mlp

from ._config import ModelConfig
from ._model import VisionModel, new_head

_EPS = 1e-6


@dataclass(frozen=True, kw_only=True)
class ConvNeXtConfig(ModelConfig):
    """The shape of a ConvNeXt.

    Args:
        patch: Height, width and stride of the first convolution.
        depths: Blocks of each stage.
        dims: Channels of each stage.
        conv_mlp: Whether the MLPs of blocks are 1 x 1 convolutions. The function is the same;
            weights have other shapes, and small models are faster.
        grn: Whether MLPs have a global response norm, as in v2; then branches have no scale.
        branch_scale: The first value of the learned scale of a branch.

    Raises:
        ArgumentError: Numbers do not fit together.
    """

    family: ClassVar[str] = "convnext"

    patch: int = 4
    depths: tuple[int, ...] = (3, 3, 9, 3)
    dims: tuple[int, ...] = (96, 192, 384, 768)
    conv_mlp: bool = False
    grn: bool = False
    branch_scale: float = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.depths) != len(self.dims):
            raise ArgumentError(
                f"`depths` {self.depths} and `dims` {self.dims} must be of one length"
            )


class _LayerNorm2d(LayerNorm):
    """`LayerNorm` over channels that come second."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class _Block(nn.Module):
    """A 7 x 7 convolution of each channel, a norm and an MLP."""

    def __init__(self, config: ConvNeXtConfig, dim: int, drop_path: float) -> None:
        super().__init__()
        self.conv = config.conv_mlp
        self.first_scale = config.branch_scale
        self.conv_dw = nn.Conv2d(dim, dim, 7, padding=3, groups=dim)
        self.norm = (_LayerNorm2d if self.conv else LayerNorm)(dim, eps=_EPS)
        self.mlp = Mlp(dim, 4 * dim, conv=self.conv, grn=config.grn)
        self.gamma = None if config.grn else nn.Parameter(torch.empty(dim))
        self.drop_path = DropPath(drop_path)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the scale of the branch to its first value."""
        if self.gamma is not None:
            nn.init.constant_(self.gamma, self.first_scale)

    def forward(self, x: Tensor) -> Tensor:
        branch = self.conv_dw(x)
        if self.conv:
            branch = self.mlp(self.norm(branch))
        else:
            branch = self.mlp(self.norm(branch.permute(0, 2, 3, 1))).permute(0, 3, 1, 2)
        if self.gamma is not None:
            branch = branch * self.gamma.view(-1, 1, 1)
        return x + self.drop_path(branch)


class _Stage(nn.Module):
    """Blocks of one width; after the first stage, a convolution of stride 2 before them."""

    def __init__(self, config: ConvNeXtConfig, stage: int, rates: list[float]) -> None:
        super().__init__()
        dim = config.dims[stage]
        self.downsample = nn.Identity()
        if stage:
            before = config.dims[stage - 1]
            self.downsample = nn.Sequential(
                _LayerNorm2d(before, eps=_EPS), nn.Conv2d(before, dim, 2, 2)
            )
        self.blocks = nn.ModuleList(_Block(config, dim, rate) for rate in rates)


class _Head(nn.Module):
    """The norm of pooled features, and the head, where timm keeps them."""

    def __init__(self, width: int, num_classes: int) -> None:
        super().__init__()
        self.norm = LayerNorm(width, eps=_EPS)
        self.fc = new_head(width, num_classes)


class ConvNeXt(VisionModel):
    """A ConvNeXt; see `ConvNeXtConfig`."""

    config: ConvNeXtConfig
    head_name = "head.fc"
    first_name = "stem.0"
    block_types = (_Block,)
    stem_at = r"stem\."
    blocks_at = (r"stages\.(\d+)\.blocks\.(\d+)\.", r"stages\.(\d+)\.downsample()\.")

    def __init__(self, config: ConvNeXtConfig) -> None:
        super().__init__(config, config.dims)
        first = config.dims[0]
        self.stem = nn.Sequential(
            nn.Conv2d(config.in_chans, first, config.patch, config.patch),
            _LayerNorm2d(first, eps=_EPS),
        )
        rates = drop_path_rates(config.drop_path, sum(config.depths))
        made: list[nn.Module] = []
        for stage, depth in enumerate(config.depths):
            before = sum(config.depths[:stage])
            made.append(_Stage(config, stage, rates[before : before + depth]))
        self.stages = nn.ModuleList(made)
        self.head = _Head(config.dims[-1], config.num_classes)
        self.initialize()

    def initialize(self) -> None:
        """Small linear maps and convolutions."""
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Conv2d):
                nn.init.trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def stage_outputs(self, images: Tensor) -> list[Tensor]:
        """Return the map of each stage."""
        x = self.stem(images)
        given: list[Tensor] = []
        for stage in self.stages.children():
            x = stage.get_submodule("downsample")(x)
            x = self.run(stage.get_submodule("blocks").children(), x)
            given.append(x)
        return given

    def pooled(self, last: Tensor) -> Tensor:
        """Return the normed mean over pixels."""
        return self.head.norm(last.mean((2, 3)))


_NARROW = (2, 2, 6, 2)
_WIDE = (3, 3, 27, 3)
_SIZES: Mapping[str, Mapping[str, Any]] = {
    "atto": {"depths": _NARROW, "dims": (40, 80, 160, 320), "conv_mlp": True},
    "femto": {"depths": _NARROW, "dims": (48, 96, 192, 384), "conv_mlp": True},
    "pico": {"depths": _NARROW, "dims": (64, 128, 256, 512), "conv_mlp": True},
    "nano": {"depths": (2, 2, 8, 2), "dims": (80, 160, 320, 640), "conv_mlp": True},
    "tiny": {"depths": (3, 3, 9, 3), "dims": (96, 192, 384, 768)},
    "small": {"depths": _WIDE, "dims": (96, 192, 384, 768)},
    "base": {"depths": _WIDE, "dims": (128, 256, 512, 1024)},
    "large": {"depths": _WIDE, "dims": (192, 384, 768, 1536)},
}

CONVNEXTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {f"convnext_{name}": size for name, size in _SIZES.items()}
    | {"convnext_xlarge": {"depths": _WIDE, "dims": (256, 512, 1024, 2048)}}
    | {f"convnextv2_{name}": {**size, "grn": True} for name, size in _SIZES.items()}
    | {"convnextv2_huge": {"depths": _WIDE, "dims": (352, 704, 1408, 2816), "grn": True}}
)
"""Sizes of ConvNeXt, by name."""
