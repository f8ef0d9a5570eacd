"""`Attention`: projections, rotary positions and norms around `attention`."""

import torch
from torch import Tensor, nn

from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError
from hotgrid.nn._blocks._norms import Norm, norm_of

from ._attend import CAUSAL, attention
from ._cache import KVCache
from ._mask import Mask
from ._paged import PagedCache
from ._rotary import Rotary


class Attention(nn.Module):
    """Multi-head attention of a sequence to itself.

    Args:
        size: The size of the last dimension, before and after.
        heads: Heads of queries.
        kv_heads: Heads of keys and values, each shared by several of queries (GQA); by
            default as many as `heads`.
        head_size: The size of a head; by default `size / heads`.
        rotary: Turns queries and keys by position; layers can share one.
        qk_norm: The norm of queries and keys over a head, before they are turned; a name
            or a `Norm`. Without parameters, before and after are the same.
        bias: Whether the linear maps have one.
        scale: The factor of the scores; by default 1 / sqrt(head_size).
        device: The device of the parameters.
        dtype: Their dtype.

    Raises:
        ArgumentError: Sizes do not divide.
    """

    def __init__(
        self,
        size: int,
        heads: int,
        *,
        kv_heads: int | None = None,
        head_size: int | None = None,
        rotary: Rotary | None = None,
        qk_norm: str | Norm | None = None,
        bias: bool = False,
        scale: float | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        kv_heads = heads if kv_heads is None else kv_heads
        if heads < 1 or kv_heads < 1 or heads % kv_heads:
            raise ArgumentError(
                f"`heads` must be a multiple of `kv_heads`, got {heads} and {kv_heads}"
            )
        if head_size is None and size % heads:
            raise ArgumentError(
                f"`size` {size} is not a multiple of {heads} heads; give `head_size`"
            )
        head_size = size // heads if head_size is None else head_size
        if rotary is not None and rotary.size != head_size:
            raise ArgumentError(f"`rotary` is for heads of {rotary.size}, not of {head_size}")
        self.size, self.heads, self.kv_heads = size, heads, kv_heads
        self.head_size, self.scale = head_size, scale

        def linear(inner: int, outer: int) -> nn.Linear:
            return nn.Linear(inner, outer, bias, device, dtype)

        def normed() -> nn.Module | None:
            made = None if qk_norm is None else norm_of(qk_norm)
            return None if made is None else made(head_size, device=device, dtype=dtype)

        self.q = linear(size, heads * head_size)
        self.k = linear(size, kv_heads * head_size)
        self.v = linear(size, kv_heads * head_size)
        self.q_norm, self.k_norm = normed(), normed()
        self.rotary = rotary
        self.out = linear(heads * head_size, size)

    @checked(x="b t size", bind="self.size", returns="b t size")
    def forward(
        self,
        x: Tensor,
        mask: Mask = CAUSAL,
        *,
        cache: KVCache | PagedCache | None = None,
        positions: Tensor | None = None,
        values: Tensor | None = None,
    ) -> Tensor:
        """Attend.

        Args:
            x: The sequence, or its next part with a cache.
            mask: Which keys a query sees; positions are those in the cache.
            cache: Keys and values of the past; those of `x` are added.
            positions: Rotary positions, of shape `(t,)` or `(b, t)`; by default they follow
                those of the cache.
            values: Added to the values, of shape `(b, t, kv_heads * head_size)`.
        """
        where: Tensor | int = 0 if cache is None else cache.positions(x.shape[1])
        q, k, v = self.heads_of(x, where if positions is None else positions, values)
        if cache is None:
            found = attention(q, k, v, mask, scale=self.scale)
        else:
            found = cache.attend(q, k, v, mask, scale=self.scale)
        return self.joined(found)

    def heads_of(
        self, x: Tensor, positions: Tensor | int = 0, values: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values, of shape `(b, heads, t, head_size)` each."""
        v = self.v(x) if values is None else self.v(x) + values
        return self.turned(self.q(x), self.k(x), v, positions)

    def turned(
        self, q: Tensor, k: Tensor, v: Tensor, positions: Tensor | int = 0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return what `heads_of` does, from the results of the linear maps."""
        q, k, v = (
            part.unflatten(-1, (-1, self.head_size)).transpose(1, 2) for part in (q, k, v)
        )
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        if self.rotary is not None:
            q, k = self.rotary(q, positions), self.rotary(k, positions)
        return q, k, v

    def joined(self, found: Tensor) -> Tensor:
        """Return the output, from the results of the heads."""
        return self.out(found.transpose(1, 2).flatten(2))

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"heads={self.heads}, kv_heads={self.kv_heads}, head_size={self.head_size}"
