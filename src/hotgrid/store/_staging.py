"""Copies of tensors, for a save that runs in the background."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# The share of a GPU's memory that copies leave to others.
_LEFT_FREE = 0.1


class Staging:
    """Memory that is kept from one save to the next.

    Fresh memory of the host costs several times the copy, since the system provides each
    page on first touch; memory that is pinned for a GPU costs more still. A GPU copies
    within its own memory a hundred times faster than to the host, so there the copy stays
    where it is, if there is memory, until it is written.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Tensor] = {}
        self._copied: dict[torch.device, torch.cuda.Event] = {}

    def copies(self, tensors: Mapping[str, Tensor], *, lent: bool = False) -> dict[str, Tensor]:
        """Copy tensors; when it returns, the caller may change the originals.

        With `copy=False`, tensors that will not change are returned unchanged; but not from a
        GPU where they would take the memory of what the caller makes next.

        What is returned on a GPU is to be read within `beside`.
        """
        import torch

        self._copied = {}
        copies: dict[str, Tensor] = {}
        devices = {tensor.device for tensor in tensors.values() if tensor.is_cuda}
        roomy = {device for device in devices if self._has_room(device, tensors)}
        for name, tensor in tensors.items():
            if lent and (tensor.device.type == "cpu" or tensor.device in roomy):
                copies[name] = tensor
                continue
            copy = _copy_there(tensor) if tensor.device in roomy else None
            copies[name] = self._to_host(name, tensor) if copy is None else copy
        for device in roomy:
            self._copied[device] = event = torch.cuda.Event()
            event.record(torch.cuda.current_stream(device))
        for device in devices:
            if any(t.device == device and not copies[n].is_cuda for n, t in tensors.items()):
                torch.cuda.synchronize(device)
        # Later saves may need copies again: releasing memory takes as long as a copy.
        self._kept = self._kept if lent else {}
        self._kept |= {
            name: copy
            for name, copy in copies.items()
            if not copy.is_cuda and copy is not tensors[name]
        }
        return copies

    @contextlib.contextmanager
    def beside(self) -> Iterator[None]:
        """Read copies on GPUs without waiting for work that the caller has queued since."""
        import torch

        with contextlib.ExitStack() as stack:
            for device, event in self._copied.items():
                own = torch.cuda.Stream(device)
                own.wait_event(event)
                stack.enter_context(torch.cuda.stream(own))
            yield

    def _to_host(self, name: str, tensor: Tensor) -> Tensor:
        import torch

        kept = self._kept.pop(name, None)
        # A tensor of inference mode could not be filled outside of it the next time.
        with torch.inference_mode(False), torch.no_grad():
            if kept is None or (kept.shape, kept.dtype) != (tensor.shape, tensor.dtype):
                kept = torch.empty(
                    tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=tensor.is_cuda
                )
            return kept.copy_(tensor, non_blocking=True)

    def _has_room(self, device: torch.device, tensors: Mapping[str, Tensor]) -> bool:
        import torch

        needed = sum(tensor.nbytes for tensor in tensors.values() if tensor.device == device)
        free, total = torch.cuda.mem_get_info(device)
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return needed <= free + unused - _LEFT_FREE * total


def _copy_there(tensor: Tensor) -> Tensor | None:
    """A copy on the same device, or None where its free memory is in too small pieces."""
    import torch

    try:
        return tensor.detach().clone()
    except torch.OutOfMemoryError:
        return None
