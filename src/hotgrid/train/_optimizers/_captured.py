"""A step of many small updates as one CUDA graph."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

# Before a function is captured it is compiled, and its kernels are loaded.
_WARMUPS = 2


class Update(Protocol):
    """Parameters that are updated together, by gradients in one tensor."""

    members: list[nn.Parameter]

    def empty_gradients(self) -> Tensor:
        """Return room for the gradients of all members."""
        ...

    def given(self, values: Mapping[str, float]) -> dict[str, Any]:
        """Set the numbers of a step."""
        ...

    def update(self, gradients: Tensor) -> None:
        """Update all members, with the numbers that are set."""
        ...


class Captured:
    """Updates that are launched as one graph once they have run a few times.

    A graph reads and writes fixed memory, so gradients are copied to a place of their own, and
    parameters that have moved are captured anew.
    """

    def __init__(self, updates: Sequence[Update]) -> None:
        self._updates = updates
        self._graph: torch.cuda.CUDAGraph | None = None
        self._gradients: list[Tensor] = []
        self._places: list[int] = []
        self._runs = 0

    @torch.no_grad()
    def step(self, values: Mapping[str, float]) -> bool:
        """Make a step; False, and nothing is done, if a parameter has no gradient."""
        gradients = [[p.grad for p in each.members] for each in self._updates]
        if any(gradient is None for some in gradients for gradient in some):
            return False
        places = [p.data_ptr() for each in self._updates for p in each.members]
        if places != self._places:
            self._graph, self._places, self._runs = None, places, 0
            self._gradients = [each.empty_gradients() for each in self._updates]
        for each, own, some in zip(self._updates, self._gradients, gradients, strict=True):
            each.given(values)
            torch.stack(some, out=own)  # pyright: ignore[reportArgumentType]
        self._runs += 1
        # Within a graph of the caller it is a part of that one.
        if self._runs <= _WARMUPS or torch.cuda.is_current_stream_capturing():
            self._update()
        else:
            (self._graph or self._capture()).replay()
        return True

    def _update(self) -> None:
        for each, own in zip(self._updates, self._gradients, strict=True):
            each.update(own)

    def _capture(self) -> torch.cuda.CUDAGraph:
        self._graph = torch.cuda.CUDAGraph()
        # Other threads, such as one that saves, may continue working meanwhile.
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            self._update()
        return self._graph
