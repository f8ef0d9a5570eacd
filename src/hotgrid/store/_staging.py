"""Copies of tensors in host memory, for a save that goes on behind the caller's back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


class Staging:
    """Host memory that is kept from one save to the next.

    Fresh memory costs several times the copy, since the system hands out each page on
    first touch; memory that is pinned for a GPU costs more still.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Tensor] = {}

    def copies(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Copy tensors; when it returns, the caller may change the originals."""
        import torch

        copies: dict[str, Tensor] = {}
        devices = {tensor.device for tensor in tensors.values() if tensor.is_cuda}
        for name, tensor in tensors.items():
            kept = self._kept.pop(name, None)
            if kept is None or (kept.shape, kept.dtype) != (tensor.shape, tensor.dtype):
                kept = torch.empty(
                    tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=tensor.is_cuda
                )
            copies[name] = kept.copy_(tensor.detach(), non_blocking=True)
        for device in devices:
            torch.cuda.synchronize(device)
        self._kept = copies
        return copies
