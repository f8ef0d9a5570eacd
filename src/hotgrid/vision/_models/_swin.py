"""Swin transformers, v1 (arXiv 2103.14030) and v2 (arXiv 2111.09883)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hotgrid.errors import ArgumentError
from hotgrid.nn import DropPath, LayerNorm, drop_path_rates
from hotgrid.vision._layers._mlp import Mlp
from hotgrid.vision._layers._patches import PatchEmbed, PatchMerging
from hotgrid.vision._layers._window_attention import CosineWindowAttention, WindowAttention
from hotgrid.vision._layers._windows import shift_mask

from ._config import ModelConfig
from ._model import VisionModel, new_head

# Made from the shape of the model; some files have them.
_MADE = ("relative_position_index", "relative_coords_table", "attn_mask")


@dataclass(frozen=True, kw_only=True)
class SwinConfig(ModelConfig):
    """The shape of a Swin transformer.

    Args:
        version: 1, with a norm before each branch and a table of position biases; or 2, with
            the norm after it, cosine attention and biases from an MLP.
        patch: Height and width of a patch.
        embed_dim: Channels of the first stage; each stage has twice those before.
        depths: Blocks of each stage.
        heads: Heads of each stage.
        windows: Height and width of the windows of each stage; one number for all. A stage
            whose map is not larger has one window, without shifts.
        trained_windows: For version 2, the windows that weights were trained with, where
            they differ; 0 where not.
        mlp_ratio: Channels inside an MLP, for each outside.
        fused: Whether attention uses the fused kernel, and not its readable version.

    Raises:
        ArgumentError: Numbers do not fit together.
    """

    family: ClassVar[str] = "swin"

    version: int = 1
    patch: int = 4
    embed_dim: int = 96
    depths: tuple[int, ...] = (2, 2, 6, 2)
    heads: tuple[int, ...] = (3, 6, 12, 24)
    windows: int | tuple[int, ...] = 7
    trained_windows: tuple[int, ...] = ()
    mlp_ratio: float = 4.0
    fused: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.version not in (1, 2):
            raise ArgumentError(f"`version` {self.version}: choose 1 or 2")
        for name, given in (
            ("heads", self.heads),
            ("windows", self.stage_windows),
            ("trained_windows", self.trained_windows or self.depths),
        ):
            if len(given) != len(self.depths):
                raise ArgumentError(
                    f"`{name}` {given} must have a number for each of {len(self.depths)} stages"
                )
        if self.image_size % self.patch:
            raise ArgumentError(
                f"`image_size` {self.image_size} is not a multiple of the patch, {self.patch}"
            )

    @property
    def stage_windows(self) -> tuple[int, ...]:
        """The window of each stage."""
        if isinstance(self.windows, int):
            return (self.windows,) * len(self.depths)
        return self.windows

    @property
    def widths(self) -> list[int]:
        """Channels of each stage."""
        return [self.embed_dim * 2**stage for stage in range(len(self.depths))]


class _Block(nn.Module):
    """Attention in windows, shifted or not, and an MLP, each added to the stream."""

    def __init__(
        self, config: SwinConfig, stage: int, size: int, drop_path: float, *, shifted: bool
    ) -> None:
        super().__init__()
        dim, heads = config.widths[stage], config.heads[stage]
        window = min(config.stage_windows[stage], size)
        self.size, self.post_norm = size, config.version == 2
        self.shift = window // 2 if shifted and size > window else 0
        self.spare = -size % window
        self.norm1 = LayerNorm(dim)
        if config.version == 1:
            self.attn = WindowAttention(dim, heads, window, fused=config.fused)
        else:
            trained = config.trained_windows[stage] if config.trained_windows else 0
            self.attn = CosineWindowAttention(
                dim, heads, window, fused=config.fused, trained=trained
            )
        self.drop_path = DropPath(drop_path)
        self.norm2 = LayerNorm(dim)
        self.mlp = Mlp(dim, int(dim * config.mlp_ratio))
        self.register_buffer("attn_mask", self._mask(), persistent=False)
        self.attn_mask: Tensor | None

    def _mask(self) -> Tensor | None:
        if not self.shift:
            return None
        return shift_mask(self.size + self.spare, self.attn.window, self.shift)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Fill the mask."""
        mask = self._mask()
        if self.attn_mask is not None and mask is not None:
            self.attn_mask.copy_(mask)

    def forward(self, x: Tensor) -> Tensor:
        if self.post_norm:
            x = x + self.drop_path(self.norm1(self._attended(x)))
            return x + self.drop_path(self.norm2(self.mlp(x)))
        x = x + self.drop_path(self._attended(self.norm1(x)))
        return x + self.drop_path(self.mlp(self.norm2(x)))

    def _attended(self, x: Tensor) -> Tensor:
        if not self.spare and self.attn.has_kernel(x):
            return self.attn.shifted(x, self.shift)
        if self.shift:
            x = x.roll((-self.shift, -self.shift), (1, 2))
        if self.spare:
            x = F.pad(x, (0, 0, 0, self.spare, 0, self.spare))
        x = self.attn(x, self.attn_mask)
        if self.spare:
            x = x[:, : self.size, : self.size]
        return x.roll((self.shift, self.shift), (1, 2)) if self.shift else x


class _Stage(nn.Module):
    """Blocks of one width; after the first stage, patches are merged before them."""

    def __init__(self, config: SwinConfig, stage: int, size: int, rates: list[float]) -> None:
        super().__init__()
        self.downsample = nn.Identity()
        if stage:
            post = config.version == 2
            self.downsample = PatchMerging(config.widths[stage - 1], post_norm=post)
        self.blocks = nn.ModuleList(
            _Block(config, stage, size, rate, shifted=place % 2 == 1)
            for place, rate in enumerate(rates)
        )


class _Head(nn.Module):
    """Where timm keeps the head."""

    def __init__(self, width: int, num_classes: int) -> None:
        super().__init__()
        self.fc = new_head(width, num_classes)


class Swin(VisionModel):
    """A Swin transformer; see `SwinConfig`."""

    config: SwinConfig
    head_name = "head.fc"
    first_name = "patch_embed.proj"
    block_types = (_Block,)
    stem_at = r"patch_embed\."
    blocks_at = (r"layers\.(\d+)\.(?:blocks\.)(\d+)\.", r"layers\.(\d+)\.downsample()\.")
    no_decay = ("relative_position_bias_table", "cpb_mlp", "logit_scale")

    def __init__(self, config: SwinConfig) -> None:
        super().__init__(config, config.widths)
        self.patch_embed = PatchEmbed(
            config.in_chans, config.embed_dim, config.patch, norm=True
        )
        rates = drop_path_rates(config.drop_path, sum(config.depths))
        size = config.image_size // config.patch
        stages: list[nn.Module] = []
        for stage, depth in enumerate(config.depths):
            size = -(-size // 2) if stage else size
            before = sum(config.depths[:stage])
            stages.append(_Stage(config, stage, size, rates[before : before + depth]))
        self.layers = nn.ModuleList(stages)
        self.norm = LayerNorm(self.widths[-1])
        self.head = _Head(self.widths[-1], config.num_classes)
        self.initialize()

    def initialize(self) -> None:
        """Small linear maps; in version 2 blocks start as nothing."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, _Block) and module.post_norm:
                nn.init.zeros_(module.norm1.get_parameter("weight"))
                nn.init.zeros_(module.norm2.get_parameter("weight"))

    def stage_outputs(self, images: Tensor) -> list[Tensor]:
        """Return the map of each stage, `batch height width channels`."""
        self.expect_size(images)
        x = self.patch_embed(images)
        given: list[Tensor] = []
        for stage in self.layers.children():
            x = stage.get_submodule("downsample")(x)
            x = self.run(stage.get_submodule("blocks").children(), x)
            given.append(x)
        return given

    def maps(self, stages: list[Tensor]) -> list[Tensor]:
        """Return the maps with channels first."""
        return [each.permute(0, 3, 1, 2) for each in stages]

    def pooled(self, last: Tensor) -> Tensor:
        """Return the mean of the normed map."""
        return self.norm(last).mean((1, 2))

    @classmethod
    def renamed(cls, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the weights under timm's names; Microsoft's files are recognised."""
        kept = {name: each for name, each in weights.items() if not name.endswith(_MADE)}
        # There, patches are merged at the end of a stage, here before the next.
        if "layers.0.downsample.reduction.weight" not in weights:
            return kept
        return {_of_microsoft(name): weight for name, weight in kept.items()}

    def resized(self, name: str, weight: Tensor, like: Tensor) -> Tensor:
        """Return a table of position biases, fitted to another window."""
        if not name.endswith("relative_position_bias_table") or weight.ndim != 2:
            return weight
        old, new = round(len(weight) ** 0.5), round(len(like) ** 0.5)
        if old * old != len(weight) or weight.shape[1] != like.shape[1]:
            return weight
        table = weight.float().T.reshape(1, -1, old, old)
        table = F.interpolate(table, (new, new), mode="bicubic")
        return table.reshape(-1, new * new).T.to(weight.dtype)


def _of_microsoft(name: str) -> str:
    """The name here of a weight in a file of Microsoft."""
    name = re.sub(r"^head\.", "head.fc.", name)
    return re.sub(
        r"^layers\.(\d+)\.downsample",
        lambda found: f"layers.{int(found[1]) + 1}.downsample",
        name,
    )
