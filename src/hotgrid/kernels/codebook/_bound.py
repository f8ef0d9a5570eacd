"""What a layer remembers of a product, so that the next one like it begins at once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from hotgrid.config import current

PARTS = ("codes", "scale", "table", "signs")
"""The names of a layer's buffers, in the order in which products take them."""


class Bound:
    """A function that multiplies vectors like those of an earlier call.

    Args:
        x: The vectors of that call; contiguous.
        parts: The tensors of the layer.
        run: Takes `x` and multiplies it.
    """

    __slots__ = ("_config", "_device", "_dtype", "_on_gpu", "_parts", "_shape", "run")

    def __init__(
        self, x: Tensor, parts: Sequence[Tensor | None], run: Callable[[Tensor], Tensor]
    ) -> None:
        self._config = current()
        self._shape, self._dtype, self._device = x.shape, x.dtype, x.device
        self._on_gpu = x.is_cuda
        self._parts = [
            (name, part, part.data_ptr())
            for name, part in zip(PARTS, parts, strict=True)
            if part is not None
        ]
        self.run = run

    def fits(self, x: Tensor, buffers: Mapping[str, Any]) -> bool:
        """Return whether `run` computes a call, with the buffers as they are now."""
        if x.dtype is not self._dtype or x.device != self._device or x.shape != self._shape:
            return False
        if self._on_gpu and torch.cuda.is_current_stream_capturing():
            return False
        for name, part, address in self._parts:
            if buffers[name] is not part or part.data_ptr() != address:
                return False
        return x.is_contiguous() and current() is self._config
