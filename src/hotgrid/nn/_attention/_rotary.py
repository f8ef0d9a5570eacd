"""Rotary positions, in both conventions."""

from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor, nn

from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError


class Rotary(nn.Module):
    """Turn pairs of elements by angles that grow with the position.

    Pair i turns by `position / base ** (2 * i / size)`. In the half-split convention
    (GPT-NeoX, Llama in transformers, nanochat) the pairs are `(i, i + size/2)`; in the
    interleaved one (RoFormer, GPT-J, Llama's own files) they are `(2i, 2i + 1)`. Weights
    are for one of them.

    Args:
        size: The size of a head; even.
        length: How many positions there are.
        base: The base of the angles.
        interleaved: The convention.
        device: The device of the tables.
        dtype: The least precise dtype of the tables, which `.bfloat16()` of a model does not
            narrow: long positions would fall together.

    Raises:
        ArgumentError: The size is odd.
    """

    cos: Tensor
    sin: Tensor

    def __init__(
        self,
        size: int,
        length: int,
        *,
        base: float = 10_000.0,
        interleaved: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        if size % 2:
            raise ArgumentError(f"`size` must be even, as pairs are turned, got {size}")
        self.size, self.length, self.base = size, length, base
        self.pairs, self.interleaved, self.dtype = size // 2, interleaved, dtype
        for name in ("cos", "sin"):
            table = torch.empty(length, self.pairs, device=device, dtype=dtype)
            self.register_buffer(name, table, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill the tables."""
        wide, device = torch.float64, self.cos.device
        exponents = torch.arange(self.pairs, dtype=wide, device=device) / self.pairs
        positions = torch.arange(self.length, dtype=wide, device=device)
        angles = torch.outer(positions, self.base**-exponents)
        self.cos.copy_(angles.cos())
        self.sin.copy_(angles.sin())

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        if self.cos.dtype != self.dtype:
            wide = torch.promote_types(self.cos.dtype, self.dtype)
            self.cos, self.sin = self.cos.to(wide), self.sin.to(wide)
            self.reset_parameters()
        return self

    @checked(x="b heads t size", bind="self.size", returns="b heads t size")
    def forward(self, x: Tensor, positions: Tensor | int = 0) -> Tensor:
        """Turn queries or keys.

        Args:
            x: Queries or keys.
            positions: The position of the first, the others follow; or of each, with a
                shape of `(t,)` or `(b, t)`.

        Raises:
            ArgumentError: The table is too short.
        """
        if isinstance(positions, int):
            end = positions + x.shape[-2]
            if positions < 0 or end > self.length:
                raise ArgumentError(
                    f"positions {positions} to {end - 1} do not fit a table of "
                    f"{self.length}; make it with a larger `length`"
                )
            cos, sin = self.cos[positions:end], self.sin[positions:end]
        else:
            cos, sin = self.cos[positions], self.sin[positions]
            if positions.ndim == 2:
                cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        wide = x.to(torch.promote_types(x.dtype, cos.dtype))
        if self.interleaved:
            a, b = wide[..., ::2], wide[..., 1::2]
            turned = torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)
        else:
            a, b = wide.chunk(2, -1)
            turned = torch.cat((a * cos - b * sin, a * sin + b * cos), -1)
        return turned.to(x.dtype)

    def extra_repr(self) -> str:
        """Return the arguments."""
        return (
            f"{self.size}, length={self.length}, base={self.base:g}, "
            f"interleaved={self.interleaved}"
        )
