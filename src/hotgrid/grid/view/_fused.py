"""Views as one compiled function each, where the same one is looked at again and again."""

import logging
from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor

_LOG = logging.getLogger("hotgrid.view")
# Calls of the same kind before compiling is worth it: while a viewer zooms, none is.
_STEADY = 60
_KEPT = 8

Reduced = Callable[..., Tensor]


class FusedViews:
    """Calls functions of tensors, compiled where the same one is called again and again.

    Compiling takes a second or two in which the run waits: while one thread traces a function,
    torch lets no other call a compiled one. A function that cannot be compiled runs as it is.

    Args:
        enabled: Whether anything is compiled.

    Attributes:
        enabled: Whether anything is compiled.
        steady: Calls of the same kind before it is compiled.
    """

    def __init__(self, *, enabled: bool) -> None:
        self.steady = _STEADY
        self.enabled = enabled
        self._ready: dict[Hashable, Reduced] = {}
        self._calls: dict[Hashable, int] = {}

    def __call__(self, key: Hashable, function: Reduced, *tensors: Tensor) -> Tensor:
        """Return what the function returns for some tensors.

        Args:
            key: Tells functions and shapes apart.
            function: Pure, of tensors alone; numbers in it are constants of its key.
            tensors: Its arguments.
        """
        known = self._ready.get(key)
        if known is not None:
            return known(*tensors)
        if self.enabled:
            self._calls[key] = self._calls.get(key, 0) + 1
            if self._calls[key] >= self.steady:
                self._compile(key, function, tensors)
            elif len(self._calls) > 8 * _KEPT:
                self._calls = {key: self._calls[key]}
        return function(*tensors)

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
