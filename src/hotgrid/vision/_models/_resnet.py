"""ResNet: residual blocks of convolutions (arXiv 1512.03385), with stride in the 3 x 3."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from hotgrid.errors import ArgumentError, near
from hotgrid.nn import DropBlock2d, DropPath, drop_path_rates

from ._config import ModelConfig
from ._model import VisionModel, new_head

_WIDTHS = (64, 128, 256, 512)


@dataclass(frozen=True, kw_only=True)
class ResNetConfig(ModelConfig):
    """The shape of a ResNet.

    Args:
        block: `basic`, two 3 x 3 convolutions, or `bottleneck`, a 3 x 3 between two 1 x 1.
        depths: Blocks of each of the four stages.
        stem: `imagenet`, a 7 x 7 convolution and a pool, both with stride 2; or `small` for
            images of about 32 pixels, a 3 x 3 convolution without stride.
        drop_block: The rate of DropBlock in the last two stages.
    """

    family: ClassVar[str] = "resnet"

    block: str = "basic"
    depths: tuple[int, ...] = (2, 2, 2, 2)
    stem: str = "imagenet"
    drop_block: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, given, known in (
            ("block", self.block, _BLOCKS),
            ("stem", self.stem, ("imagenet", "small")),
        ):
            if given not in known:
                raise ArgumentError(
                    f"`{name}` {given!r} is not one of {', '.join(known)}{near(given, known)}"
                )
        if len(self.depths) != len(_WIDTHS):
            raise ArgumentError(f"`depths` {self.depths} must have {len(_WIDTHS)} numbers")


class _Block(nn.Module):
    """A residual branch and its shortcut, with stochastic depth in training."""

    expansion: ClassVar[int]

    def __init__(
        self, inner: int, width: int, stride: int, drop_path: float, drop_block: DropBlock2d
    ) -> None:
        super().__init__()
        outer = width * self.expansion
        self.downsample = None
        if stride != 1 or inner != outer:
            self.downsample = nn.Sequential(
                nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer)
            )
        self.drop_path = DropPath(drop_path)
        self.drop_block = drop_block

    def joined(self, x: Tensor, branch: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        return F.relu(self.drop_path(branch) + shortcut)


class _Basic(_Block):
    """Two 3 x 3 convolutions."""

    expansion = 1

    def __init__(self, inner: int, width: int, stride: int, *drops: Any) -> None:
        super().__init__(inner, width, stride, *drops)
        self.conv1 = nn.Conv2d(inner, width, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        branch = F.relu(self.drop_block(self.bn1(self.conv1(x))))
        return self.joined(x, self.bn2(self.conv2(branch)))


class _Bottleneck(_Block):
    """A 3 x 3 convolution of a quarter of the channels, between two 1 x 1."""

    expansion = 4

    def __init__(self, inner: int, width: int, stride: int, *drops: Any) -> None:
        super().__init__(inner, width, stride, *drops)
        self.conv1 = nn.Conv2d(inner, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, width * 4, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(width * 4)

    def forward(self, x: Tensor) -> Tensor:
        branch = F.relu(self.bn1(self.conv1(x)))
        branch = F.relu(self.drop_block(self.bn2(self.conv2(branch))))
        return self.joined(x, self.bn3(self.conv3(branch)))


_BLOCKS: Mapping[str, type[_Block]] = MappingProxyType(
    {"basic": _Basic, "bottleneck": _Bottleneck}
)


class ResNet(VisionModel):
    """A ResNet; see `ResNetConfig`."""

    config: ResNetConfig
    head_name = "fc"
    first_name = "conv1"
    block_types = (_Basic, _Bottleneck)
    stem_at = r"conv1\.|bn1\."
    blocks_at = (r"layer(\d+)\.(\d+)\.",)

    def __init__(self, config: ResNetConfig) -> None:
        block = _BLOCKS[config.block]
        super().__init__(config, (width * block.expansion for width in _WIDTHS))
        kernel, stride = (7, 2) if config.stem == "imagenet" else (3, 1)
        inner = _WIDTHS[0]
        self.conv1 = nn.Conv2d(
            config.in_chans, inner, kernel, stride, padding=kernel // 2, bias=False
        )
        self.bn1 = nn.BatchNorm2d(inner)
        rates = iter(drop_path_rates(config.drop_path, sum(config.depths)))
        for stage, (width, depth) in enumerate(zip(_WIDTHS, config.depths, strict=True)):
            made: list[nn.Module] = []
            for place in range(depth):
                stride = 2 if stage and not place else 1
                drop = _drop_block(config.drop_block, stage)
                made.append(block(inner, width, stride, next(rates), drop))
                inner = width * block.expansion
            self.add_module(f"layer{stage + 1}", nn.Sequential(*made))
        self.fc = new_head(inner, config.num_classes)
        self.initialize()

    def initialize(self) -> None:
        """Kaiming for convolutions; the last gain of a block is 0, so it starts as nothing."""
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, _Basic):
                nn.init.zeros_(module.bn2.weight)
            elif isinstance(module, _Bottleneck):
                nn.init.zeros_(module.bn3.weight)

    def stage_outputs(self, images: Tensor) -> list[Tensor]:
        """Return the map of each stage."""
        x = F.relu(self.bn1(self.conv1(images)))
        if self.config.stem == "imagenet":
            x = F.max_pool2d(x, 3, 2, padding=1)
        maps: list[Tensor] = []
        for stage in range(len(_WIDTHS)):
            x = self.run(self.get_submodule(f"layer{stage + 1}").children(), x)
            maps.append(x)
        return maps

    def pooled(self, last: Tensor) -> Tensor:
        """Return the mean over pixels."""
        return last.mean((2, 3))


def _drop_block(rate: float, stage: int) -> DropBlock2d:
    """As in timm: blocks of 5 pixels at a quarter of the rate, then of 3."""
    if stage < 2:
        return DropBlock2d(0.0)
    return DropBlock2d(rate / 4, 5) if stage == 2 else DropBlock2d(rate, 3)


RESNETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "resnet18": {"block": "basic", "depths": (2, 2, 2, 2)},
        "resnet34": {"block": "basic", "depths": (3, 4, 6, 3)},
        "resnet26": {"block": "bottleneck", "depths": (2, 2, 2, 2)},
        "resnet50": {"block": "bottleneck", "depths": (3, 4, 6, 3)},
        "resnet101": {"block": "bottleneck", "depths": (3, 4, 23, 3)},
        "resnet152": {"block": "bottleneck", "depths": (3, 8, 36, 3)},
        "resnet18_cifar": {
            "block": "basic",
            "depths": (2, 2, 2, 2),
            "stem": "small",
            "image_size": 32,
            "num_classes": 10,
        },
    }
)
"""Sizes of ResNet, by name."""
