"""Attention inside windows, with a bias for relative positions: Swin's, v1 and v2."""

import math
from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError

from ._shifted_windows import attend_shifted, kernel_fits
from ._windows import log_spaced_positions, relative_position_index

# Kernels for tensor cores work on multiples of this many tokens.
_ALIGN = 16
_HIDDEN = 512
_LARGEST_SCALE = math.log(100.0)


@checked(
    q="b (windows heads) tokens size",
    k="b (windows heads) tokens size",
    v="b (windows heads) tokens size",
    bias="heads tokens tokens",
    mask="windows tokens tokens",
    returns="b _ tokens size",
)
def attend_readable(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor, mask: Tensor | None, *, scale: float
) -> Tensor:
    """Return softmax(q k^T scale + bias + mask) v, as it is written.

    Args:
        q: Queries of each window and head, the heads of one window after each other.
        k: Keys.
        v: Values.
        bias: Added to the scores of a head.
        mask: Added to the scores of a window, the same in every image.
        scale: The factor of the scores.
    """
    scores = q @ k.transpose(-2, -1) * scale + _added(bias, mask, q)
    return scores.softmax(-1) @ v


@checked(
    q="b (windows heads) tokens size",
    k="b (windows heads) tokens size",
    v="b (windows heads) tokens size",
    bias="heads tokens tokens",
    mask="windows tokens tokens",
    returns="b _ tokens size",
)
def attend_fused(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor,
    mask: Tensor | None,
    *,
    scale: float,
    align: int | None = None,
) -> Tensor:
    """Return the same as `attend_readable` by `scaled_dot_product_attention`.

    Bias and mask are one tensor without a batch, so scores are never stored.

    Args:
        q: Queries of each window and head, the heads of one window after each other.
        k: Keys.
        v: Values.
        bias: Added to the scores of a head.
        mask: Added to the scores of a window, the same in every image.
        scale: The factor of the scores.
        align: Tokens are padded to a multiple of this; by default to 16 on CUDA, where 49
            would miss the fast kernels.
    """
    tokens = q.shape[2]
    spare = -tokens % (align or (_ALIGN if q.is_cuda else 1))
    added = _added(bias, mask, q)
    if spare:
        q, k, v = (F.pad(each, (0, 0, 0, spare)) for each in (q, k, v))
        # No token sees a padded one.
        added = F.pad(F.pad(added, (0, spare), value=-math.inf), (0, 0, 0, spare))
    added = added.expand(q.shape[0], -1, -1, -1)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=added, scale=scale)
    return out[:, :, :tokens]


def _added(bias: Tensor, mask: Tensor | None, q: Tensor) -> Tensor:
    """Bias and mask of every window and head: `1 (windows heads) tokens tokens`."""
    windows = q.shape[1] // bias.shape[0]
    both = bias.expand(windows, -1, -1, -1) if mask is None else bias + mask.unsqueeze(1)
    return both.flatten(0, 1).unsqueeze(0).to(q.dtype)


class _InWindows(nn.Module, ABC):
    """The parts that both versions share: projections, windows, heads and positions."""

    def __init__(
        self, dim: int, heads: int, window: int, scale: float, *, fused: bool, bias: bool
    ) -> None:
        super().__init__()
        if dim % heads:
            raise ArgumentError(f"{dim} channels cannot be shared by {heads} heads evenly")
        self.dim, self.heads, self.window, self.fused = dim, heads, window, fused
        self.scale = scale
        self.qkv = nn.Linear(dim, 3 * dim, bias=bias)
        self.proj = nn.Linear(dim, dim)
        index = relative_position_index(window)
        self.register_buffer("relative_position_index", index, persistent=False)
        self.relative_position_index: Tensor

    @abstractmethod
    def bias(self) -> Tensor:
        """Return the bias that is added to scores: `heads tokens tokens`."""

    def projected(self, x: Tensor) -> Tensor:
        """Return queries, keys and values, after each other in the last dimension."""
        return self.qkv(x)

    def scaled(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries and keys whose products, times `scale`, are the scores."""
        return q, k

    def packed(self, x: Tensor) -> Tensor:
        """Return queries and keys as `scaled` has them, and values, as `projected` does."""
        return self.projected(x)

    @checked(
        x="b (rows window) (columns window) dim",
        mask="(rows*columns) (window*window) (window*window)",
        bind="self.dim, self.window",
        returns="b (rows*window) (columns*window) dim",
    )
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend in each window of a map.

        Args:
            x: A map whose sides are multiples of the window.
            mask: Added to the scores of each window; see `shift_mask`.
        """
        batch, height, width, _ = x.shape
        side, rows, columns = self.window, height // self.window, width // self.window
        # A linear layer is independent of token order: windows are made after it, in the
        # same copy that brings the heads to the front.
        qkv = self.projected(x)
        qkv = qkv.reshape(batch, rows, side, columns, side, 3, self.heads, -1)
        qkv = qkv.permute(5, 0, 1, 3, 6, 2, 4, 7).reshape(
            3, batch, rows * columns * self.heads, side * side, -1
        )
        q, k = self.scaled(qkv[0], qkv[1])
        attend = attend_fused if self.fused else attend_readable
        out = attend(q, k, qkv[2], self.bias(), mask, scale=self.scale)
        out = out.reshape(batch, rows, columns, self.heads, side, side, -1)
        return self.proj(out.permute(0, 1, 4, 2, 5, 3, 6).reshape(x.shape))

    def has_kernel(self, x: Tensor) -> bool:
        """Return whether `shifted` takes a map; see `kernel_fits`."""
        return self.fused and kernel_fits(x, self.window, self.dim // self.heads)

    @checked(
        x="b (rows window) (columns window) dim",
        bind="self.dim, self.window",
        returns="b (rows*window) (columns*window) dim",
    )
    def shifted(self, x: Tensor, shift: int) -> Tensor:
        """Attend in each window of a map that is shifted up and left, and shift it back.

        One kernel takes the map as it is: nothing is rolled, cut or permuted in memory.

        Args:
            x: A map whose sides are multiples of the window; see `has_kernel`.
            shift: How far; less than a window. The mask is that of `shift_mask`.
        """
        qkv, bias = self.packed(x), self.bias().contiguous()
        return self.proj(attend_shifted(qkv, bias, self.window, shift, self.scale))

    def extra_repr(self) -> str:
        """Return the arguments."""
        return f"{self.dim}, heads={self.heads}, window={self.window}, fused={self.fused}"


class WindowAttention(_InWindows):
    """Attention inside windows, with a learned bias for each relative position (Swin v1).

    Args:
        dim: Channels.
        heads: How many heads; they divide the channels.
        window: Height and width of a window.
        fused: Whether the kernel (see `has_kernel`) or `attend_fused` is used, and not their
            readable version.

    Raises:
        ArgumentError: Heads do not divide the channels.
    """

    def __init__(self, dim: int, heads: int, window: int, *, fused: bool = True) -> None:
        scale = (dim // heads) ** -0.5
        super().__init__(dim, heads, window, scale, fused=fused, bias=True)
        self.relative_position_bias_table = nn.Parameter(
            torch.empty((2 * window - 1) ** 2, heads)
        )
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Fill the table with small numbers, and the index of positions."""
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)
        self.relative_position_index.copy_(relative_position_index(self.window))

    def bias(self) -> Tensor:
        """Return the bias that is added to scores: `heads tokens tokens`."""
        return self.relative_position_bias_table[self.relative_position_index].permute(2, 0, 1)


class CosineWindowAttention(_InWindows):
    """Attention by the cosine of queries and keys, with a bias from an MLP (Swin v2).

    The MLP maps relative positions, so weights of one window serve another.

    Args:
        dim: Channels.
        heads: How many heads; they divide the channels.
        window: Height and width of a window.
        fused: Whether the kernel (see `has_kernel`) or `attend_fused` is used, and not their
            readable version.
        trained: The window that the weights were trained with; 0 for this one.

    Raises:
        ArgumentError: Heads do not divide the channels.
    """

    def __init__(
        self, dim: int, heads: int, window: int, *, fused: bool = True, trained: int = 0
    ) -> None:
        super().__init__(dim, heads, window, 1.0, fused=fused, bias=False)
        self.trained = trained
        self.q_bias = nn.Parameter(torch.empty(dim))
        self.v_bias = nn.Parameter(torch.empty(dim))
        self.logit_scale = nn.Parameter(torch.empty(heads, 1, 1))
        self.cpb_mlp = nn.Sequential(
            nn.Linear(2, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, heads, bias=False)
        )
        positions = log_spaced_positions(window, trained)
        self.register_buffer("relative_coords_table", positions, persistent=False)
        self.relative_coords_table: Tensor
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Set biases to 0 and the scale of scores to 10, and fill the tables of positions."""
        nn.init.zeros_(self.q_bias)
        nn.init.zeros_(self.v_bias)
        nn.init.constant_(self.logit_scale, math.log(10.0))
        self.relative_position_index.copy_(relative_position_index(self.window))
        self.relative_coords_table.copy_(log_spaced_positions(self.window, self.trained))

    def bias(self) -> Tensor:
        """Return the bias that is added to scores, from 0 to 16: `heads tokens tokens`."""
        table = 16 * torch.sigmoid(self.cpb_mlp(self.relative_coords_table).flatten(0, 1))
        return table[self.relative_position_index].permute(2, 0, 1)

    def projected(self, x: Tensor) -> Tensor:
        """Return queries, keys and values; keys have no bias."""
        bias = torch.cat((self.q_bias, torch.zeros_like(self.v_bias), self.v_bias))
        return F.linear(x, self.qkv.weight, bias)

    def scaled(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Return unit vectors, the queries times a learned scale of their head."""
        scale = self.logit_scale.clamp(max=_LARGEST_SCALE).exp()
        q = F.normalize(q, dim=-1).unflatten(1, (-1, self.heads)) * scale
        # Under autocast the product is wider than the values.
        return q.flatten(1, 2).to(k.dtype), F.normalize(k, dim=-1).to(k.dtype)

    def packed(self, x: Tensor) -> Tensor:
        """Return scaled queries and keys, and values, after each other."""
        qkv = self.projected(x)
        # For `scaled` each token is a window of its own.
        tokens = qkv.unflatten(-1, (3, self.heads, 1, -1)).flatten(0, 2)
        q, k, v = tokens.unbind(1)
        return torch.stack((*self.scaled(q, k), v), 1).view(qkv.shape)
