"""`KVCache`: keys and values of the past, in buffers of a fixed size."""

import torch
from torch import Tensor

from hotgrid.contracts import assert_shape
from hotgrid.errors import ArgumentError

from ._attend import attention
from ._mask import Mask


class KVCache:
    """Keys and values of one attention layer, for decoding a few tokens at a time.

    Args:
        batch: How many sequences.
        heads: Heads of keys and values.
        length: The most positions.
        size: The size of a head.
        static: Whether shapes stay the same: attention then goes over the whole buffer and
            the position is a tensor, for CUDA graphs and `torch.compile`. The caller
            keeps it from overflowing.
        device: The device of the buffers.
        dtype: The dtype of the buffers.

    Attributes:
        position: How many positions are filled; a tensor if `static`.
    """

    def __init__(
        self,
        batch: int,
        heads: int,
        length: int,
        size: int,
        *,
        static: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        shape = (batch, heads, length, size)
        # Zeros: what is masked must still be finite.
        self.keys = torch.zeros(shape, device=device, dtype=dtype)
        self.values = torch.zeros(shape, device=device, dtype=dtype)
        self.length, self.static = length, static
        self.position: int | Tensor = 0
        if static:
            self.position = torch.zeros((), dtype=torch.int64, device=self.keys.device)

    @torch.no_grad()
    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add keys and values, and return those to attend to: all so far, or the buffers.

        Raises:
            ContractError: Their shape is not that of the buffers.
            ArgumentError: The cache has no room for them.
        """
        batch, heads, _, size = self.keys.shape
        for given in (keys, values):
            assert_shape("b heads t size", given, {"b": batch, "heads": heads, "size": size})
        count = keys.shape[2]
        if isinstance(self.position, Tensor):
            where = self.position + torch.arange(count, device=self.keys.device)
            self.keys.index_copy_(2, where, keys.to(self.keys.dtype))
            self.values.index_copy_(2, where, values.to(self.values.dtype))
            self.position += count
            return self.keys, self.values
        end = self.position + count
        if end > self.length:
            raise ArgumentError(
                f"the cache has {self.length} positions, {self.position} of them filled, so "
                f"{count} more do not fit; make it with a larger `length`"
            )
        self.keys[:, :, self.position : end] = keys
        self.values[:, :, self.position : end] = values
        self.position = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def positions(self, count: int) -> int | Tensor:
        """Return the position of the first new token, or of all of them if `static`."""
        if isinstance(self.position, Tensor):
            return self.position + torch.arange(count, device=self.keys.device)
        return self.position

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, *, scale: float | None = None
    ) -> Tensor:
        """Add keys and values, and attend to all so far; see `attention`."""
        # A tensor changes when keys are added.
        at = self.position
        offset = at.clone() if isinstance(at, Tensor) else at
        keys, values = self.append(k, v)
        return attention(q, keys, values, mask, offset=offset, scale=scale)

    def reset(self) -> None:
        """Forget everything, to start again in the same buffers."""
        if isinstance(self.position, Tensor):
            self.position.zero_()
        else:
            self.position = 0
