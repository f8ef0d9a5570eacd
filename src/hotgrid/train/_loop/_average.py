"""The exponential moving average of parameters and buffers."""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from hotgrid.errors import ArgumentError
from hotgrid.tensors._torch_private import foreach_lerp_
from hotgrid.train._optimizers import local_part


class Average:
    """A running average of a module's parameters, in float32 or wider, on their devices.

    Buffers that are saved and have a floating dtype are averaged too: the statistics of a
    batch norm must be those of the averaged weights. With parameters cut over ranks, each rank
    averages its part.

    Attributes:
        live: The parameters and buffers of the module, by path.
        tensors: Their averages.
        buffers: The averages of buffers.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        if not isinstance(decay, int | float) or not 0 < decay < 1:
            raise ArgumentError(f"`average` is {decay!r}; expected a decay in (0, 1), or None")
        self._weight = 1 - decay
        saved = module.state_dict(keep_vars=True)
        buffers = {
            path: x
            for path, x in module.named_buffers()
            if path in saved and x.is_floating_point()
        }
        self.live: dict[str, Tensor] = {**dict(module.named_parameters()), **buffers}
        self.tensors: dict[str, Tensor] = {}
        for path, x in self.live.items():
            # Torch does not promote 8-bit numbers.
            wide = x.itemsize > 1
            kind = torch.promote_types(x.dtype, torch.float32) if wide else torch.float32
            self.tensors[path] = local_part(x.detach()).to(kind, copy=True)
        self.buffers = [self.tensors[path] for path in buffers]

    @torch.no_grad()
    def update(self) -> None:
        """Move towards the present values."""
        now = [
            local_part(x.detach()).to(average.dtype)
            for x, average in zip(self.live.values(), self.tensors.values(), strict=True)
        ]
        foreach_lerp_(list(self.tensors.values()), now, self._weight)

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Give the module its averages inside the block."""
        before = {path: local_part(x.detach()).clone() for path, x in self.live.items()}
        self._set(self.tensors)
        try:
            yield
        finally:
            self._set(before)

    @torch.no_grad()
    def _set(self, values: dict[str, Tensor]) -> None:
        for path, x in self.live.items():
            local_part(x.detach()).copy_(values[path])
