"""What a layer remembers of a product, so that the next one like it begins at once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from hotgrid.config import current
from hotgrid.kernels.tune import check_of, plain, signature_of, unwatched

from ._coded import PARTS


class Bound:
    """A function that multiplies vectors like those of an earlier call.

    Args:
        x: The vectors of that call; contiguous.
        parts: The tensors of the layer.
        run: Takes `x` and multiplies it.
    """

    __slots__ = ("_absent", "_alike", "_config", "_known", "_on_gpu", "_parts", "_seen", "run")

    def __init__(
        self, x: Tensor, parts: Sequence[Tensor | None], run: Callable[[Tensor], Tensor]
    ) -> None:
        self._config = current()
        named = list(zip(PARTS, parts, strict=True))
        self._absent = [name for name, part in named if part is None]
        self._parts = [
            (name, part, part.data_ptr()) for name, part in named if part is not None
        ]
        self._known = [part for _, part, _ in self._parts]
        self._seen = signature_of((x, *self._known))
        # Somebody may give a part another form in its place.
        self._alike = check_of((x, *self._known)) or self._looks_alike
        self._on_gpu = x.is_cuda
        self.run = run

    def fits(self, x: Tensor, buffers: Mapping[str, Any]) -> bool:
        """Return whether `run` computes a call, with the buffers as they are now.

        Not to be asked while a compiler traces.
        """
        if not unwatched() or not self._alike(x, *self._known):
            return False
        if self._on_gpu and torch.cuda.is_current_stream_capturing():
            return False
        for name, part, address in self._parts:
            if buffers[name] is not part or part.data_ptr() != address:
                return False
        for name in self._absent:
            if buffers[name] is not None:
                return False
        return current() is self._config

    def _looks_alike(self, *tensors: Tensor) -> bool:
        """The same where torch has no such check."""
        return plain(*tensors) and signature_of(tensors) == self._seen
