"""`PagedCache`: keys and values of many sequences, in blocks of one pool."""

import torch
import torch.nn.functional as F
from torch import Tensor

from hotgrid.contracts import assert_shape, checked
from hotgrid.errors import ArgumentError

from ._mask import Mask


class Pages:
    """The places of the next tokens of some sequences in paged caches.

    Make one for a forward pass and give it to the cache of every layer.

    Args:
        table: The blocks of each sequence in order, of shape `(b, n)`. Block 0 belongs to no
            sequence; use it for what is not needed.
        position: How many tokens of each sequence the caches have, of shape `(b,)`.
        count: How many of the next tokens of each are real, of shape `(b,)`; the others are
            padding.
        width: How many tokens are next, padding included.
        block: The tokens of a block.

    Raises:
        ContractError: Shapes do not fit together.
    """

    def __init__(
        self, table: Tensor, position: Tensor, count: Tensor, width: int, block: int
    ) -> None:
        # Not `checked`, which cannot be traced around a constructor.
        batch = {"b": table.shape[0]}
        assert_shape("b n", table, batch)
        assert_shape("b", position, batch)
        assert_shape("b", count, batch)
        self.table, self.block = table, block
        steps = torch.arange(width, device=table.device)
        # Padding repeats the last real position, or is at 0, so that every query sees a key.
        real = steps < count[:, None]
        last = torch.where(count > 0, position + count - 1, 0)[:, None]
        self.positions = torch.minimum(position[:, None] + steps, last)
        within = (self.positions // block).clamp(max=table.shape[1] - 1)
        places = table.gather(1, within) * block + self.positions % block
        self.places = torch.where(real, places, 0).flatten()
        self._seen: dict[int | None, Tensor] = {}

    def seen(self, mask: Mask) -> Tensor:
        """Return which of the gathered keys each query sees, of shape (b, 1, t, s).

        Raises:
            ArgumentError: The mask is not causal, or has documents.
        """
        if not mask.causal or mask.documents is not None:
            raise ArgumentError("a paged cache needs a causal mask without documents")
        if mask.window not in self._seen:
            key = torch.arange(self.table.shape[1] * self.block, device=self.table.device)
            query = self.positions[:, None, :, None]
            seen = key <= query
            if mask.window is not None:
                seen = seen & (query - key < mask.window)
            self._seen[mask.window] = seen
        return self._seen[mask.window]


class PagedCache:
    """Keys and values of one attention layer for many sequences.

    The pool is cut into blocks. A sequence has a list of them, which grows with it, so that
    memory depends on the tokens stored and not on the longest possible sequence.

    Args:
        blocks: Blocks of the pool; the first is for padding.
        heads: Heads of keys and values.
        block: The tokens of a block.
        size: The size of a head.
        device: The device of the pool.
        dtype: Its dtype.

    Attributes:
        pages: The places of the next tokens; set it before each forward pass.

    Example:
        >>> cache = PagedCache(4, heads=2, block=16, size=8)
        >>> table, start = torch.tensor([[2, 3]]), torch.tensor([0])
        >>> cache.pages = Pages(table, start, count=torch.tensor([1]), width=1, block=16)
        >>> q = k = v = torch.ones(1, 2, 1, 8)
        >>> cache.attend(q, k, v, Mask()).shape
        torch.Size([1, 2, 1, 8])
    """

    def __init__(
        self,
        blocks: int,
        heads: int,
        block: int,
        size: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        # Zeros: what is masked must still be finite.
        shape = (blocks * block, heads, size)
        self.keys = torch.zeros(shape, device=device, dtype=dtype)
        self.values = torch.zeros(shape, device=device, dtype=dtype)
        self.block = block
        self.pages: Pages | None = None

    def positions(self, count: int) -> Tensor:
        """Return the positions of the next tokens, of shape (b, t)."""
        return self._given().positions

    @checked(q="b heads t size", k="b kv t size", v="b kv t size", returns="b heads t size")
    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, *, scale: float | None = None
    ) -> Tensor:
        """Add keys and values, and attend to those of the same sequence; see `attention`."""
        pages = self._given()
        for pool, new in ((self.keys, k), (self.values, v)):
            rows = new.transpose(1, 2).flatten(0, 1)
            pool.index_copy_(0, pages.places, rows.to(pool.dtype))
        return F.scaled_dot_product_attention(
            q,
            self._gathered(self.keys, pages).to(q.dtype),
            self._gathered(self.values, pages).to(q.dtype),
            attn_mask=pages.seen(mask),
            scale=scale,
            enable_gqa=q.shape[1] != k.shape[1],
        )

    def _gathered(self, pool: Tensor, pages: Pages) -> Tensor:
        """Return the blocks of each sequence in order, of shape (b, heads, s, size)."""
        batch, count = pages.table.shape
        blocks = pool.view(-1, self.block, *pool.shape[1:])
        found = blocks.index_select(0, pages.table.flatten())
        return found.view(batch, count * self.block, *pool.shape[1:]).transpose(1, 2)

    def _given(self) -> Pages:
        if self.pages is None:
            raise ArgumentError("set `pages` of a paged cache before a forward pass")
        return self.pages
