"""Launch Triton kernels again without Triton's launcher.

Triton binds names, types and options on every call, which takes longer than a small
kernel. What it compiles depends on types, constants, numbers, and whether addresses are
multiples of 16. Compiled kernels are cached by these, and called with addresses, since for each
tensor the launcher would ask the driver whether the GPU can access it.
"""

from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor

from hotgrid.tensors._torch_private import cuda_stream_getter, current_cuda_device

ALIGNED = 16
"""Triton compiles a kernel of its own where an address is not a multiple of it."""

_MOST_REMEMBERED = 4096  # launches; Triton finds a kernel again, only slower


class TritonLauncher:
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
        numbers: tuple[int | float, ...],
        constants: tuple[int | bool, ...],
        num_warps: int = 4,
    ) -> None:
        """Run it on the device of its first tensor."""
        device = tensors[0].device
        if device.type == "cuda" and device.index != current_cuda_device():
            # Triton launches on the current device, not on that of the arguments.
            with torch.cuda.device(device):
                self(grid, tensors, numbers, constants, num_warps)
            return
        addresses = [x.data_ptr() for x in tensors]
        bits = 0
        for each in addresses:
            bits |= each
        aligned: Hashable = True  # all of them, mostly
        if bits % ALIGNED:
            aligned = tuple([each % ALIGNED == 0 for each in addresses])
        types = tuple([x.dtype for x in tensors])
        key = (grid, types, aligned, numbers, constants, num_warps, device)
        launch = self._known.get(key)
        if launch is not None:
            launch(*addresses)
            return
        made = self._function[grid](*tensors, *numbers, *constants, num_warps=num_warps)
        # The interpreter, which tests use, compiles nothing.
        if hasattr(made, "packed_metadata"):
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            self._known[key] = _again(made, grid, (*numbers, *constants), device.index)

    def of_addresses(
        self,
        grid: tuple[int, int, int],
        tensors: tuple[Tensor, ...],
        numbers: tuple[int | float, ...],
        constants: tuple[int | bool, ...],
        num_warps: int = 4,
    ) -> Callable[..., None] | None:
        """Return an earlier launch as a function of the tensors' addresses.

        They must all be multiples of `ALIGNED`, on the device of `tensors`, which must be
        the current one. None where there was no such launch.
        """
        types, device = tuple([x.dtype for x in tensors]), tensors[0].device
        return self._known.get((grid, types, True, numbers, constants, num_warps, device))


def _again(
    made: Any, grid: tuple[int, int, int], others: tuple[int | float, ...], device: int
) -> Callable[..., None]:
    """A compiled kernel as a function of addresses, on the current stream of a device."""
    plainly = made[grid]
    try:
        from triton import knobs  # pyright: ignore[reportMissingImports]

        # What Triton itself does with it, without what only profilers need.
        run, handle, packed = made.run, made.function, made.packed_metadata
        stream_of = cuda_stream_getter()
        runtime: Any = knobs.runtime
        _watched(runtime)
    except (AttributeError, ImportError):
        return lambda *addresses: plainly(*addresses, *others)
    along, down, deep = grid

    def launch(*addresses: int) -> None:
        if _watched(runtime):
            plainly(*addresses, *others)
            return
        stream = stream_of(device)
        run(
            along, down, deep, stream, handle, packed, None, None, None, *addresses, *others
        )  # fmt: skip

    return launch


def _watched(runtime: Any) -> bool:
    """Whether launch hooks are set."""
    enter, leave = runtime.launch_enter_hook, runtime.launch_exit_hook
    return bool(getattr(enter, "calls", enter) or getattr(leave, "calls", leave))
