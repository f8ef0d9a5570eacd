"""The exponential moving average of the parameters."""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from hotgrid.errors import ArgumentError
from hotgrid.tensors._torch_private import foreach_lerp_
from hotgrid.train._optimizers import local


class Average:
    """A running average of parameters, in float32 or wider, on the device of each.

    Buffers are those of the module. With parameters cut over ranks, each rank averages
    its part.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        if not 0 < decay < 1:
            raise ArgumentError(f"`average` is {decay!r}; expected a decay in (0, 1), or None")
        self._weight = 1 - decay
        self._parameters = dict(module.named_parameters())
        self.tensors: dict[str, Tensor] = {}
        for path, parameter in self._parameters.items():
            kind = torch.promote_types(parameter.dtype, torch.float32)
            self.tensors[path] = local(parameter.detach()).to(kind, copy=True)

    @torch.no_grad()
    def update(self) -> None:
        """Move towards the present parameters."""
        now = [
            local(p.detach()).to(average.dtype)
            for p, average in zip(self._parameters.values(), self.tensors.values(), strict=True)
        ]
        foreach_lerp_(list(self.tensors.values()), now, self._weight)

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Give the module its averaged parameters inside the block."""
        before = {path: local(p.detach()).clone() for path, p in self._parameters.items()}
        self._set(self.tensors)
        try:
            yield
        finally:
            self._set(before)

    @torch.no_grad()
    def _set(self, values: dict[str, Tensor]) -> None:
        for path, parameter in self._parameters.items():
            local(parameter.detach()).copy_(values[path])
