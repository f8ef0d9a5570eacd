"""Patches: from pixels to tokens, and from tokens to fewer and wider ones."""

import torch.nn.functional as F
from torch import Tensor, nn

from hotgrid.contracts import checked
from hotgrid.nn import LayerNorm


class PatchEmbed(nn.Module):
    """Map each square patch of an image to a vector.

    Args:
        in_chans: Channels of images.
        dim: The size of a vector.
        patch: Height and width of a patch.
        norm: Whether vectors are normed.
    """

    def __init__(self, in_chans: int, dim: int, patch: int, *, norm: bool = False) -> None:
        super().__init__()
        self.in_chans, self.dim, self.patch = in_chans, dim, patch
        self.proj = nn.Conv2d(in_chans, dim, patch, patch)
        self.norm = LayerNorm(dim) if norm else nn.Identity()

    @checked(
        images="b in_chans (h patch) (w patch)",
        bind="self.in_chans, self.patch, self.dim",
        returns="b h w dim",
    )
    def forward(self, images: Tensor) -> Tensor:
        """Return a vector for each patch, `batch height width dim`."""
        return self.norm(self.proj(images).permute(0, 2, 3, 1))


class PatchMerging(nn.Module):
    """Merge each 2 x 2 neighbours into one token of twice the channels.

    Args:
        dim: Channels.
        post_norm: Whether the norm is after the linear map (Swin v2), or before it (v1).
    """

    def __init__(self, dim: int, *, post_norm: bool = False) -> None:
        super().__init__()
        self.dim, self.post_norm = dim, post_norm
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = LayerNorm(2 * dim if post_norm else 4 * dim)

    @checked(x="b h w dim", bind="self.dim", returns="b _ _ 2*dim")
    def forward(self, x: Tensor) -> Tensor:
        """Return half as many tokens in height and width; an odd side gets a zero more."""
        batch, height, width, channels = x.shape
        if height % 2 or width % 2:
            x = F.pad(x, (0, 0, 0, width % 2, 0, height % 2))
        x = x.reshape(batch, -(-height // 2), 2, -(-width // 2), 2, channels)
        # Neighbours in the order of the published weights: down first, then across.
        x = x.permute(0, 1, 3, 4, 2, 5).flatten(3)
        return self.norm(self.reduction(x)) if self.post_norm else self.reduction(self.norm(x))
