"""A module on its ranks: copied or cut, compiled, and how tensors lie on them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from hotgrid.cluster import Communicator, data_parallel, fully_sharded
from hotgrid.config import current
from hotgrid.errors import ArgumentError, CommunicationError
from hotgrid.store import Shard
from hotgrid.train._optimizers import is_cut, local_part

Sharding = Literal["copies", "cut"]
Compiled: TypeAlias = "bool | Literal['graphs']"


class Placement:
    """The module of a run.

    Attributes:
        module: The module itself, whose parameters are trained.
        ranks: The ranks.
        called: The object passed to the step function: the module behind DDP or the compiler.
    """

    def __init__(
        self,
        module: nn.Module,
        ranks: Communicator,
        sharding: Sharding,
        layers: type[nn.Module] | tuple[type[nn.Module], ...],
        compiled: Compiled,
    ) -> None:
        if sharding not in ("copies", "cut"):
            raise ArgumentError(f"`sharding` is {sharding!r}; expected copies or cut")
        self.module, self.ranks = module, ranks
        if ranks.size > 1 and sharding == "cut":
            self._copy_from_first()
            fully_sharded(module, ranks, layers=layers)
        called = module
        if compiled and current().compile.enabled != "off":
            # CUDA graphs launch all kernels of the module at once.
            mode = "reduce-overhead" if compiled == "graphs" else None
            called = torch.compile(module, mode=mode)
        # DDP would send messages in every forward pass.
        self.evaluated: Any = called
        self.called: Any = called
        # With a cut module every rank must take part in every forward pass.
        self.together = _is_sharded(module)

    def copy(self) -> None:
        """Keep a copy on every rank, after the optimizer has frozen parameters.

        DDP would wait for the gradients of parameters that are frozen later.
        """
        if self.ranks.size > 1 and not self.together:
            self.called = data_parallel(self.called, self.ranks)

    @contextlib.contextmanager
    def accumulating(self, last: bool) -> Iterator[None]:
        """Send gradients to the other ranks only with the last micro-batch of a step.

        Raises:
            CommunicationError: Another rank was lost while they were sent.
        """
        with contextlib.ExitStack() as stack:
            if self.together:
                module: Any = self.module
                module.set_requires_gradient_sync(last)
            elif isinstance(self.called, DistributedDataParallel) and not last:
                stack.enter_context(self.called.no_sync())
            try:
                yield
            except RuntimeError as problem:
                # The error that torch raises here has no type of its own.
                if not re.search("gloo|NCCL", str(problem)):
                    raise
                raise CommunicationError(
                    f"rank {self.ranks.rank} of {self.ranks.size} lost another rank while "
                    f"gradients were sent ({str(problem).partition(chr(10))[0]}). Look at its "
                    "output first; continue a run with checkpoints by resuming it"
                ) from problem

    def cut_again(self) -> None:
        """Drop parameters that a forward pass without a backward pass has left gathered."""
        each: Any
        for each in self.module.modules():
            if _is_sharded(each):
                each.reshard()

    @property
    def alone(self) -> bool:
        """Whether there is nothing to send."""
        return self.ranks.size == 1

    @torch.no_grad()
    def same_buffers(self, averages: Iterable[Tensor] = ()) -> None:
        """Give every rank the buffers of the first, as DDP does before a forward pass.

        Args:
            averages: Averages of buffers, which differ between ranks just as much.
        """
        if self.alone:
            return
        for buffer in (*self.module.buffers(), *averages):
            kept = buffer.contiguous()
            self.ranks.broadcast(kept, 0)
            if kept is not buffer:
                buffer.copy_(kept)

    @torch.no_grad()
    def _copy_from_first(self) -> None:
        for tensor in (*self.module.parameters(), *self.module.buffers()):
            kept = tensor.detach().contiguous()
            self.ranks.broadcast(kept, 0)
            tensor.copy_(kept)


def _is_sharded(module: nn.Module) -> bool:
    """Whether it is an `FSDPModule`, a class that takes most of a second to import."""
    return hasattr(module, "set_requires_gradient_sync")


def piece(tensor: Tensor, like: Tensor | None = None) -> Tensor | Shard:
    """A tensor as checkpoints take it: a part where it is cut over ranks.

    Args:
        tensor: The tensor to save; the local part if `like` is given.
        like: The tensor that says how it is cut; by default itself.
    """
    layout: Any = tensor if like is None else like
    if not is_cut(layout):
        return tensor.detach()
    from torch.distributed.tensor import Shard as CutAlong

    offset = [0] * layout.ndim
    where = layout.device_mesh.get_coordinate() or ()
    for at, size, cut in zip(where, layout.device_mesh.shape, layout.placements, strict=True):
        if isinstance(cut, CutAlong):
            n = layout.shape[cut.dim]
            # As `torch.chunk` cuts.
            offset[cut.dim] = min(at * -(-n // size), n)
    return Shard(local_part(tensor).detach(), tuple(offset), tuple(layout.shape))


def cut_like(part: Tensor, like: Tensor) -> Tensor:
    """A local part as a tensor that is cut as another is."""
    if not is_cut(like):
        return part
    from torch.distributed.tensor import DTensor

    layout: Any = like
    return DTensor.from_local(
        part,
        layout.device_mesh,
        layout.placements,
        run_check=False,
        shape=layout.shape,
        stride=layout.stride(),
    )
