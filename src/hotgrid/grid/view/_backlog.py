"""Keeping a GPU busy: steps are queued ahead of it, but not far."""

import time
from collections import deque
from typing import Any

import torch

# Slices of steps that are queued or running.
_AHEAD = 2


class Backlog:
    """Waits while too many slices of steps are queued, never until none is left.

    Arguments:
        device: Where steps run; a CPU has no queue.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._slices: deque[Any] = deque()

    def added(self) -> None:
        """Call when a slice was queued; returns when the one before is running or done."""
        if self._device.type != "cuda":
            return
        event = torch.cuda.Event(blocking=True)
        event.record(torch.cuda.current_stream(self._device))
        self._slices.append(event)
        while len(self._slices) >= _AHEAD:
            self._slices.popleft().synchronize()


class Stopwatch:
    """Seconds that a device spends on what is queued from here on.

    Arguments:
        device: Where work is queued.
    """

    def __init__(self, device: torch.device) -> None:
        self._stream: Any = None
        self._began: Any = time.perf_counter()
        if device.type == "cuda":
            self._stream = torch.cuda.current_stream(device)
            self._began = torch.cuda.Event(enable_timing=True)
            self._began.record(self._stream)

    def seconds(self) -> float:
        """How many it took so far; on a GPU it waits for the work."""
        if self._stream is None:
            return time.perf_counter() - self._began
        end = torch.cuda.Event(enable_timing=True)
        end.record(self._stream)
        end.synchronize()
        return self._began.elapsed_time(end) / 1000
