"""Memory of batches, reused once the batch is released."""

import weakref
from collections import deque
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class Buffers:
    """Arrays for batches, each reused once the last tensor on it is gone.

    Fresh memory of some megabytes is zeroed by the system page by page, which takes longer
    than to copy it. Page-locked memory is left to torch: a copy from it may still be under way
    when its last tensor is gone, and torch waits for that before it uses the memory again.

    Args:
        pin: Page-locked memory, from which copies to a GPU do not wait.
    """

    def __init__(self, pin: bool) -> None:
        self._pin = pin
        self._free: dict[tuple[Any, ...], deque[NDArray[Any]]] = {}

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """An array to fill; its values are arbitrary."""
        if self._pin:
            kind = torch.from_numpy(np.empty(0, dtype)).dtype
            return torch.empty(shape, dtype=kind, pin_memory=True).numpy()
        free = self._free.setdefault((shape, dtype), deque())
        try:
            return free.pop()
        except IndexError:
            return np.empty(shape, dtype)

    def lend(self, array: NDArray[Any]) -> Tensor:
        """The array as a tensor; the array returns once its memory is no longer used."""
        if self._pin:
            # The tensor that torch allocated: copies from another on its memory are not seen.
            return cast("Tensor", array.base)
        # The tensor's memory holds the view, and only it does: views of tensors and arrays
        # made of them hold that memory.
        view = array.view()
        free = self._free[array.shape, array.dtype]
        weakref.finalize(view, free.append, array).atexit = False
        return torch.from_numpy(view)
