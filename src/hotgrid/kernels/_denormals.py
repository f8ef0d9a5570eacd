"""Denormal numbers as zero on the CPU, for as long as a block lasts."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from hotgrid import _native

from ._openmp import core


@contextmanager
def denormals_as_zero(device: torch.device, torch_threads: bool = True) -> Iterator[None]:
    """Compute with denormal numbers as zero inside the block.

    That holds for this thread, for those of the native core when it calls them, and for all
    threads of torch.

    A processor takes up to a hundred times longer for a number below 1e-38 (float32) than
    for others, and a field that decays is full of them. It does nothing on other devices,
    without the native core, and where denormal numbers are zero already.

    Args:
        device: Where the block computes.
        torch_threads: Whether to set torch's threads as well. They look for more work for
            some milliseconds after that, which slows the threads of the core.

    Examples:
        >>> import torch
        >>> tiny = torch.full((4,), 1e-30)
        >>> with denormals_as_zero(tiny.device):
        ...     product = tiny * 1e-10
        >>> product.count_nonzero().item()
        0
    """
    if device.type != "cpu" or not _native.available() or core().denormals_are_zero():
        yield
        return
    threads = torch.get_num_threads() if torch_threads else 1
    core().set_denormals_zero(True, threads)
    try:
        yield
    finally:
        core().set_denormals_zero(False, threads)
