"""Vision transformers (arXiv 2010.11929): a class token and patches through equal blocks."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hotgrid.errors import ArgumentError
from hotgrid.nn import DropPath, LayerNorm, Mask, attention, drop_path_rates
from hotgrid.vision._layers._mlp import Mlp
from hotgrid.vision._layers._patches import PatchEmbed

from ._config import ModelConfig
from ._model import VisionModel, new_head

_EVERYTHING = Mask(causal=False)
_STAGES = 4


@dataclass(frozen=True, kw_only=True)
class ViTConfig(ModelConfig):
    """The shape of a vision transformer.

    Args:
        patch: Height and width of a patch.
        embed_dim: Channels.
        depth: Blocks.
        heads: Heads of attention.
        mlp_ratio: Channels inside an MLP, for each outside.

    Raises:
        ArgumentError: Numbers do not fit together.
    """

    family: ClassVar[str] = "vit"

    patch: int = 16
    embed_dim: int = 192
    depth: int = 12
    heads: int = 3
    mlp_ratio: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.image_size % self.patch:
            raise ArgumentError(
                f"`image_size` {self.image_size} is not a multiple of the patch, {self.patch}"
            )
        if self.embed_dim % self.heads:
            raise ArgumentError(
                f"`embed_dim` {self.embed_dim} cannot be shared by {self.heads} heads evenly"
            )
        if self.depth < _STAGES:
            raise ArgumentError(f"`depth` {self.depth}: choose {_STAGES} or more")


class _Attention(nn.Module):
    """Attention of all tokens, under the names of timm's weights."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, dim = x.shape
        qkv = self.qkv(x).reshape(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        out = attention(qkv[0], qkv[1], qkv[2], _EVERYTHING)
        return self.proj(out.transpose(1, 2).reshape(batch, tokens, dim))


class _Block(nn.Module):
    """Attention and an MLP, each added to the stream."""

    def __init__(self, config: ViTConfig, drop_path: float) -> None:
        super().__init__()
        dim = config.embed_dim
        self.norm1 = LayerNorm(dim, eps=1e-6)
        self.attn = _Attention(dim, config.heads)
        self.norm2 = LayerNorm(dim, eps=1e-6)
        self.mlp = Mlp(dim, int(dim * config.mlp_ratio))
        self.drop_path = DropPath(drop_path)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop_path(self.attn(self.norm1(x)))
        return x + self.drop_path(self.mlp(self.norm2(x)))


class ViT(VisionModel):
    """A vision transformer; see `ViTConfig`.

    All blocks have maps of one size; `features` gives those after each quarter of them.
    """

    config: ViTConfig
    head_name = "head"
    first_name = "patch_embed.proj"
    block_types = (_Block,)
    stem_at = r"cls_token|pos_embed|patch_embed\."
    blocks_at = (r"blocks\.(\d+)\.",)
    no_decay = ("cls_token", "pos_embed")

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config, (config.embed_dim,) * _STAGES)
        dim = config.embed_dim
        self.patch_embed = PatchEmbed(config.in_chans, dim, config.patch)
        tokens = (config.image_size // config.patch) ** 2 + 1
        self.cls_token = nn.Parameter(torch.empty(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.empty(1, tokens, dim))
        rates = drop_path_rates(config.drop_path, config.depth)
        self.blocks = nn.ModuleList(_Block(config, rate) for rate in rates)
        self.norm = LayerNorm(dim, eps=1e-6)
        self.head = new_head(dim, config.num_classes)
        self.initialize()

    def initialize(self) -> None:
        """Small linear maps and positions, and next to no class token."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        nn.init.normal_(self.cls_token, std=1e-6)

    def stage_outputs(self, images: Tensor) -> list[Tensor]:
        """Return the tokens after each quarter of the blocks, the class token first."""
        self.expect_size(images)
        patches = self.patch_embed(images).flatten(1, 2)
        x = torch.cat((self.cls_token.expand(len(images), -1, -1), patches), 1) + self.pos_embed
        blocks, given = list(self.blocks), []
        ends = [self.config.depth * (stage + 1) // _STAGES for stage in range(_STAGES)]
        for first, end in zip([0, *ends], ends, strict=False):
            x = self.run(blocks[first:end], x)
            given.append(x)
        return given

    def maps(self, stages: list[Tensor]) -> list[Tensor]:
        """Return the patches as maps, without the class token."""
        side = self.config.image_size // self.config.patch
        return [each[:, 1:].transpose(1, 2).unflatten(2, (side, side)) for each in stages]

    def pooled(self, last: Tensor) -> Tensor:
        """Return the normed class token."""
        return self.norm(last[:, 0])

    def resized(self, name: str, weight: Tensor, like: Tensor) -> Tensor:
        """Return positions fitted to images of another size."""
        if name != "pos_embed" or weight.ndim != 3 or weight.shape[-1] != like.shape[-1]:
            return weight
        old, new = math.isqrt(weight.shape[1] - 1), math.isqrt(like.shape[1] - 1)
        if old * old != weight.shape[1] - 1:
            return weight
        token, places = weight[:, :1], weight[:, 1:]
        places = places.float().transpose(1, 2).unflatten(2, (old, old))
        places = F.interpolate(places, (new, new), mode="bicubic", antialias=True)
        return torch.cat((token, places.flatten(2).transpose(1, 2).to(token.dtype)), 1)


_TINY = {"embed_dim": 192, "depth": 12, "heads": 3}
_SMALL = {"embed_dim": 384, "depth": 12, "heads": 6}
_BASE = {"embed_dim": 768, "depth": 12, "heads": 12}
_LARGE = {"embed_dim": 1024, "depth": 24, "heads": 16}
_HUGE = {"embed_dim": 1280, "depth": 32, "heads": 16}


def _vit(size: Mapping[str, Any], patch: int, image: int = 224) -> dict[str, Any]:
    return {**size, "patch": patch, "image_size": image}


# Heads are those of the weights published under these names; some have none.
VITS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "vit_tiny_patch16_224": _vit(_TINY, 16),
        "vit_tiny_patch16_384": _vit(_TINY, 16, 384),
        "vit_small_patch32_224": _vit(_SMALL, 32),
        "vit_small_patch32_384": _vit(_SMALL, 32, 384),
        "vit_small_patch16_224": _vit(_SMALL, 16),
        "vit_small_patch16_384": _vit(_SMALL, 16, 384),
        "vit_small_patch8_224": {**_vit(_SMALL, 8), "num_classes": 0},
        "vit_base_patch32_224": _vit(_BASE, 32),
        "vit_base_patch32_384": _vit(_BASE, 32, 384),
        "vit_base_patch16_224": _vit(_BASE, 16),
        "vit_base_patch16_384": _vit(_BASE, 16, 384),
        "vit_base_patch8_224": _vit(_BASE, 8),
        "vit_large_patch32_224": {**_vit(_LARGE, 32), "num_classes": 0},
        "vit_large_patch32_384": _vit(_LARGE, 32, 384),
        "vit_large_patch16_224": _vit(_LARGE, 16),
        "vit_large_patch16_384": _vit(_LARGE, 16, 384),
        "vit_large_patch14_224": _vit(_LARGE, 14),
        "vit_huge_patch14_224": {**_vit(_HUGE, 14), "num_classes": 0},
        "deit_tiny_patch16_224": _vit(_TINY, 16),
        "deit_small_patch16_224": _vit(_SMALL, 16),
        "deit_base_patch16_224": _vit(_BASE, 16),
        "deit_base_patch16_384": _vit(_BASE, 16, 384),
    }
)
"""Sizes of vision transformers, by name."""
