"""Views as one compiled function each, made beside the run and used when they are there."""

import logging
import threading
from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor

_LOG = logging.getLogger("hotgrid.view")
# Calls of the same kind before compiling is worth it: while a viewer zooms, none is.
_STEADY = 12
_KEPT = 8

Reduced = Callable[..., Tensor]


class FusedViews:
    """Calls functions of tensors, compiled where the same one is called again and again.

    Compiling takes seconds and goes on in a thread; until then functions are called as they
    are. One that cannot be compiled stays as it is.

    Arguments:
        enabled: Whether anything is compiled.
    """

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._ready: dict[Hashable, Reduced] = {}
        self._calls: dict[Hashable, int] = {}
        self._thread: threading.Thread | None = None

    def __call__(self, key: Hashable, function: Reduced, *tensors: Tensor) -> Tensor:
        """What the function returns for some tensors.

        Arguments:
            key: What tells functions apart, and shapes.
            function: Pure, of tensors alone; numbers in it are constants of its key.
            tensors: Its arguments.
        """
        known = self._ready.get(key)
        if known is not None:
            return known(*tensors)
        if self._enabled:
            self._calls[key] = self._calls.get(key, 0) + 1
            busy = self._thread is not None and self._thread.is_alive()
            if self._calls[key] >= _STEADY and not busy:
                self._thread = threading.Thread(
                    target=self._compile, args=(key, function, tensors), daemon=True
                )
                self._thread.start()
            elif len(self._calls) > 8 * _KEPT:
                self._calls = {key: self._calls[key]}
        return function(*tensors)

    def wait(self) -> None:
        """Wait for what is being compiled."""
        if self._thread is not None:
            self._thread.join()

    @property
    def compiled(self) -> int:
        """How many functions are compiled."""
        return len(self._ready)

    def _compile(self, key: Hashable, function: Reduced, tensors: tuple[Tensor, ...]) -> None:
        try:
            made = fused(function, *tensors)
        except Exception as problem:  # noqa: BLE001  a view is drawn without it, too
            _LOG.warning("a view is not compiled: %s", str(problem).partition("\n")[0])
            made = function
        while len(self._ready) >= _KEPT:
            del self._ready[next(iter(self._ready))]
        self._ready[key] = made
        self._calls.pop(key, None)


def fused(function: Reduced, *tensors: Tensor) -> Reduced:
    """A function of tensors compiled into one graph, for tensors like these."""
    # Not by dynamo: views are any Python, and run once to be recorded.
    from torch.fx.experimental.proxy_tensor import make_fx

    with torch.no_grad():
        graph: Any = make_fx(function)(*tensors)
        made: Any = torch.compile(graph, dynamic=False, fullgraph=True)
        made(*tensors)
    return made
