"""What a layer remembers of a product, so that the next one like it begins at once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from hotgrid.config import current
from hotgrid.kernels.tune import plain
from hotgrid.kernels.tune._plain import any_mode
from hotgrid.kernels.tune._shortcuts import check_of

PARTS = ("codes", "scale", "table", "signs")
"""The names of a layer's buffers, in the order in which products take them."""


class Bound:
    """A function that multiplies vectors like those of an earlier call.

    Args:
        x: The vectors of that call; contiguous.
        parts: The tensors of the layer.
        run: Takes `x` and multiplies it.
    """

    __slots__ = (
        "_absent", "_alike", "_config", "_device", "_dtype", "_on_gpu", "_parts", "_shape",
        "run",
    )  # fmt: skip

    def __init__(
        self, x: Tensor, parts: Sequence[Tensor | None], run: Callable[[Tensor], Tensor]
    ) -> None:
        self._config = current()
        self._shape, self._dtype, self._device = x.shape, x.dtype, x.device
        self._alike = check_of((x,)) or self._looks_alike
        self._on_gpu = x.is_cuda
        named = list(zip(PARTS, parts, strict=True))
        self._absent = [name for name, part in named if part is None]
        self._parts = [
            (name, part, part.data_ptr(), part.shape)
            for name, part in named
            if part is not None
        ]
        self.run = run

    def fits(self, x: Tensor, buffers: Mapping[str, Any]) -> bool:
        """Return whether `run` computes a call, with the buffers as they are now.

        Not to be asked while a compiler traces.
        """
        # What torch's check does not notice; the rest of what makes a call plain it does.
        if any_mode() or forward_ad._current_level >= 0 or not self._alike(x):
            return False
        if self._on_gpu and torch.cuda.is_current_stream_capturing():
            return False
        for name, part, address, shape in self._parts:
            if buffers[name] is not part or part.data_ptr() != address:
                return False
            # Somebody may have given it another form in its place.
            if part.shape != shape or not part.is_contiguous():
                return False
        for name in self._absent:
            if buffers[name] is not None:
                return False
        return current() is self._config

    def _looks_alike(self, x: Tensor) -> bool:
        """The same where torch has no such check."""
        if not plain(x) or x.dtype is not self._dtype or x.device != self._device:
            return False
        return x.shape == self._shape and x.is_contiguous()
