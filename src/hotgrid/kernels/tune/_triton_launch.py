"""Launching Triton kernels again, past their own look at every argument and option.

Triton binds names, types and options anew on every call, which takes longer than a small
kernel. What it compiles depends on types, constants, numbers, and whether addresses are
multiples of 16. By these the compiled kernel is found again here.
"""

from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor

_ALIGNED = 16
_MOST_REMEMBERED = 4096  # launches; Triton finds a kernel again, only slower


class Launcher:
    """A Triton kernel that is launched with positional arguments.

    Args:
        function: What `triton.jit` made; its parameters are tensors, numbers and
            constants, in this order.
    """

    def __init__(self, function: Any) -> None:
        self._function = function
        self._known: dict[Hashable, Callable[..., None]] = {}

    def __call__(
        self,
        grid: tuple[int, int, int],
        tensors: tuple[Tensor, ...],
        numbers: tuple[int, ...],
        constants: tuple[int | bool, ...],
        num_warps: int = 4,
    ) -> None:
        """Run it on the device of its first tensor."""
        device = tensors[0].device
        if device.type == "cuda" and device.index != torch.cuda.current_device():
            # Triton launches on the current device, whatever its arguments say.
            with torch.cuda.device(device):
                self(grid, tensors, numbers, constants, num_warps)
            return
        bits = 0
        for x in tensors:
            bits |= x.data_ptr()
        aligned: Hashable = True  # all of them, mostly
        if bits % _ALIGNED:
            aligned = tuple([x.data_ptr() % _ALIGNED == 0 for x in tensors])
        types = tuple([x.dtype for x in tensors])
        key = (grid, types, aligned, numbers, constants, num_warps, device)
        launch = self._known.get(key)
        if launch is not None:
            launch(*tensors, *numbers, *constants)
            return
        made = self._function[grid](*tensors, *numbers, *constants, num_warps=num_warps)
        # The interpreter, which tests use, compiles nothing.
        if hasattr(made, "packed_metadata"):
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            self._known[key] = made[grid]
