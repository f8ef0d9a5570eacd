"""`GroupCommunicator`: a communicator over a process group of torch.distributed."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from hotgrid.errors import ArgumentError, HotgridError

from ._communicator import Communicator, Message, Pending, Reduction

_OPS = {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX}


def _newest(name: str, old: str) -> Callable[..., Any]:
    # Names that torch 2.13 has given anew, with a warning on the old ones.
    return getattr(dist, name, None) or getattr(dist, old)


_all_gather = _newest("all_gather_single", "all_gather_into_tensor")
_reduce_scatter = _newest("reduce_scatter_single", "reduce_scatter_tensor")


class GroupCommunicator(Communicator):
    """Talks through one process group, given explicitly.

    Ranks are those of the group. Data that only moves travels as bytes, so every dtype
    does. Sums and maxima are left to the group: gloo knows bool (maximum only), 8-, 32-
    and 64-bit ints, and floats from 16 bits on.

    Args:
        group: A `torch.distributed.ProcessGroup`: gloo for tensors on the CPU, nccl for
            those on a GPU.
        device: Where small tensors of its own live; a device that the group serves.
        checking: Compare shapes before each differentiable collective.

    Raises:
        ArgumentError: `group` is None: the default group is not taken silently.

    Example:
        >>> run_ranks(2, lambda communicator: communicator.gather_json(communicator.rank))
        [[0, 1], [0, 1]]
    """

    def __init__(
        self,
        group: dist.ProcessGroup,
        device: torch.device | str = "cpu",
        *,
        checking: bool = False,
    ) -> None:
        if group is None:
            raise ArgumentError(
                "`group` is None; for the default group write `torch.distributed.group.WORLD` "
                "after `init_process_group`"
            )
        super().__init__(group.rank(), group.size(), torch.device(device), checking)
        self.group = group

    def post(self, sends: Sequence[Message], receives: Sequence[Message]) -> Pending:
        """Begin to send and to receive, without waiting.

        Where a backend knows no tags (nccl), messages between two ranks are matched in
        the order given here.
        """
        try:
            if self.device.type == "cpu":
                works = []
                for x, peer, tag in receives:
                    works.append(self.group.recv([x], peer, tag))
                for x, peer, tag in sends:
                    works.append(self.group.send([x], peer, tag))
                return _Works(works, self)
            # One launch for all: one after the other they would wait for each other.
            batch = [self._batched(dist.isend, each) for each in sends]
            batch += [self._batched(dist.irecv, each) for each in receives]
            return _Works(dist.batch_isend_irecv(batch) if batch else [], self)
        except RuntimeError as error:
            raise self._lost("a message", error) from error

    def all_reduce(self, x: Tensor, op: Reduction = "sum") -> None:
        """Put the sum or the largest over all ranks into `x`, on every rank."""
        try:
            dist.all_reduce(x, _OPS[op], group=self.group)
        except RuntimeError as error:
            raise self._lost("all_reduce", error) from error

    def reduce(self, x: Tensor, target: int) -> None:
        """Put the sum over all ranks into `x` on rank `target`, and anything elsewhere."""
        try:
            dist.reduce(x, group=self.group, group_dst=target)
        except RuntimeError as error:
            raise self._lost("reduce", error) from error

    def broadcast(self, x: Tensor, source: int) -> None:
        """Put what rank `source` has in `x` into it on every rank."""
        try:
            dist.broadcast(_bytes(x), group=self.group, group_src=source)
        except RuntimeError as error:
            raise self._lost("broadcast", error) from error

    def all_gather(self, x: Tensor) -> Tensor:
        """Return the `x` of all ranks, `[size, *x.shape]`."""
        x = x.contiguous()
        out = x.new_empty((self.size, *x.shape))
        try:
            _all_gather(_bytes(out), _bytes(x), group=self.group)
        except RuntimeError as error:
            raise self._lost("all_gather", error) from error
        return out

    def reduce_scatter(self, x: Tensor) -> Tensor:
        """Return the sum over all ranks of the own part of `x`, `[size, *part]`."""
        x = x.contiguous()
        out = x.new_empty(x.shape[1:])
        try:
            _reduce_scatter(out.view(-1), x.view(-1), group=self.group)
        except RuntimeError as error:
            raise self._lost("reduce_scatter", error) from error
        return out

    def all_to_all(self, x: Tensor, sent: Sequence[int], received: Sequence[int]) -> Tensor:
        """Return parts of a flat `x` from every rank: so many elements each way."""
        x, each = x.contiguous(), x.element_size()
        out = x.new_empty(sum(received))
        arrive = [count * each for count in received]
        leave = [count * each for count in sent]
        try:
            dist.all_to_all_single(_bytes(out), _bytes(x), arrive, leave, group=self.group)
        except RuntimeError as error:
            raise self._lost("all_to_all", error) from error
        return out

    def barrier(self) -> None:
        """Return when every rank has come here."""
        try:
            # nccl has to be told which GPU is meant.
            own = self.device.index if self.device.type == "cuda" else None
            dist.barrier(group=self.group, device_ids=None if own is None else [own])
        except RuntimeError as error:
            raise self._lost("barrier", error) from error

    def _batched(self, begin: Callable[..., Any], message: Message) -> dist.P2POp:
        return dist.P2POp(
            begin, _bytes(message.tensor), group=self.group, group_peer=message.peer
        )

    def _lost(self, what: str, error: RuntimeError) -> HotgridError:
        """What the backend raised, as an error that says who lost whom."""
        # Backends name their source before the first sentence and give advice after it.
        reason = re.sub(r"^\[[^]]*\]\s*", "", str(error).partition("\n")[0])
        return HotgridError(
            f"rank {self.rank} of {self.size} could not finish {what}: "
            f"{reason.partition('. ')[0]}. Another rank may have stopped, or waits in another "
            "call; look at its output first"
        )


def _bytes(x: Tensor) -> Tensor:
    """The bytes of a contiguous tensor, as a flat view."""
    return x.view(-1).view(torch.uint8)


class _Works(Pending):
    __slots__ = ("_owner", "_works")

    def __init__(self, works: Sequence[Any], owner: GroupCommunicator) -> None:
        self._works = works
        self._owner = owner

    def wait(self) -> None:
        """Return when all have left and all have arrived."""
        try:
            for work in self._works:
                work.wait()
        except RuntimeError as error:
            raise self._owner._lost("a message", error) from error
