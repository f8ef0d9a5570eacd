"""`GroupCommunicator`: a communicator over a process group of torch.distributed."""

import re
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor

from hotgrid.config import current
from hotgrid.errors import ArgumentError, CommunicationError

from ._call_check import call_check, expect_splits
from ._communicator import Communicator, Message, Pending, Reduction, plain


def _options(op: Any) -> Any:
    options = dist.AllreduceOptions()
    options.reduceOp = op
    # From torch 2.8 on the group itself waits where it can.
    if hasattr(options, "asyncOp"):
        options.asyncOp = False
    return options


_SUMMING = {"sum": _options(dist.ReduceOp.SUM), "max": _options(dist.ReduceOp.MAX)}


def _newest(name: str, old: str) -> Callable[..., Any]:
    # torch 2.13 has renamed these, and warns about the old names.
    return getattr(dist, name, None) or getattr(dist, old)


_all_gather = _newest("all_gather_single", "all_gather_into_tensor")
_reduce_scatter = _newest("reduce_scatter_single", "reduce_scatter_tensor")


class GroupCommunicator(Communicator):
    """Communicates through one process group, passed explicitly.

    Ranks are those of the group. Data that only moves travels as bytes, so every dtype
    does. Sums and maxima are left to the group: gloo knows bool (maximum only), 8-, 32-
    and 64-bit ints, and floats from 16 bits on.

    Before the first collective of each kind (its name, shape, dtype and options) ranks
    compare it. If they differ, all of them raise an `ArgumentError`. That takes two short
    messages; later calls of the same kind cost nothing. It needs a group with a backend for
    the CPU, such as gloo, or `cpu:gloo,cuda:nccl` for GPUs.

    Args:
        group: A `torch.distributed.ProcessGroup`: gloo for tensors on the CPU, nccl for
            those on a GPU.
        device: Where small tensors of its own live; a device that the group serves.
        checking: Compare every call, not only the first of each kind. Give the same on all
            ranks.
        another: Makes one more group of the same ranks, over gloo, for `beside`; by
            default `torch.distributed.new_group` does.

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
        another: Callable[[], dist.ProcessGroup] | None = None,
    ) -> None:
        if group is None:
            raise ArgumentError(
                "`group` is None; for the default group write `torch.distributed.group.WORLD` "
                "after `init_process_group`"
            )
        super().__init__(group.rank(), group.size(), torch.device(device), checking)
        self.group = group
        self._another = another
        self._check = call_check(group)

    def post(self, sends: Sequence[Message], receives: Sequence[Message]) -> Pending:
        """Begin to send and to receive, without waiting.

        Where a backend knows no tags (nccl), messages between two ranks are matched in
        the order given here.
        """
        begun = time.monotonic()
        try:
            if self.device.type == "cpu":
                works = [self.group.recv([x], peer, tag) for x, peer, tag in receives]
                works += [self.group.send([x], peer, tag) for x, peer, tag in sends]
                return _Works(works, (*receives, *sends), begun, self)
            # One launch for all: one after the other they would wait for each other.
            batch = [self._batched(dist.isend, each) for each in sends]
            batch += [self._batched(dist.irecv, each) for each in receives]
            works = dist.batch_isend_irecv(batch) if batch else []
            return _Works(works, (), begun, self)
        except RuntimeError as error:
            raise self._lost("a message", begun, error) from error

    def all_reduce(self, x: Tensor, op: Reduction = "sum") -> None:
        """Put the sum or the largest over all ranks into `x`, on every rank."""
        options = _SUMMING.get(op)
        if options is None or (op == "max" and x.is_complex()):
            raise ArgumentError(
                f"`op` {op!r} is not supported for {x.dtype}; use 'sum', or 'max' of "
                "real numbers"
            )
        _expect_contiguous(x)
        self.agree("all_reduce", x.dtype, x.shape, op)
        begun = time.monotonic()
        try:
            # Past torch.distributed.all_reduce, whose checks cost more than a small sum.
            numbers = torch.view_as_real(x) if x.is_complex() else x
            self._wait(self.group.allreduce([numbers], options))
        except RuntimeError as error:
            raise self._lost("all_reduce", begun, error) from error

    def reduce(self, x: Tensor, target: int) -> None:
        """Put the sum over all ranks into `x` on rank `target`, and anything elsewhere."""
        _expect_contiguous(x)
        self.agree("reduce", x.dtype, x.shape, "target=", target)
        begun = time.monotonic()
        try:
            self._wait(dist.reduce(x, group=self.group, group_dst=target, async_op=True))
        except RuntimeError as error:
            raise self._lost("reduce", begun, error) from error

    def broadcast(self, x: Tensor, source: int) -> None:
        """Put what rank `source` has in `x` into it on every rank."""
        _expect_contiguous(x)
        self.agree("broadcast", x.dtype, x.shape, "source=", source)
        begun = time.monotonic()
        try:
            self._wait(
                dist.broadcast(_bytes(x), group=self.group, group_src=source, async_op=True)
            )
        except RuntimeError as error:
            raise self._lost("broadcast", begun, error) from error

    def all_gather(self, x: Tensor) -> Tensor:
        """Return the `x` of all ranks, `[size, *x.shape]`."""
        x = plain(x)
        self.agree("all_gather", x.dtype, x.shape)
        out = x.new_empty((self.size, *x.shape))
        begun = time.monotonic()
        try:
            self._wait(_all_gather(_bytes(out), _bytes(x), group=self.group, async_op=True))
        except RuntimeError as error:
            raise self._lost("all_gather", begun, error) from error
        return out

    def reduce_scatter(self, x: Tensor) -> Tensor:
        """Return the sum over all ranks of the own part of `x`, `[size, *part]`."""
        x = plain(x)
        self.agree("reduce_scatter", x.dtype, x.shape)
        out = x.new_empty(x.shape[1:])
        begun = time.monotonic()
        try:
            self._wait(
                _reduce_scatter(out.view(-1), x.view(-1), group=self.group, async_op=True)
            )
        except RuntimeError as error:
            raise self._lost("reduce_scatter", begun, error) from error
        return out

    def all_to_all(self, x: Tensor, sent: Sequence[int], received: Sequence[int]) -> Tensor:
        """Return parts of a flat `x` from every rank, with the number of elements each way."""
        x, each = plain(x), x.element_size()
        out = x.new_empty(sum(received))
        arrive = [count * each for count in received]
        leave = [count * each for count in sent]
        self.agree("all_to_all", x.dtype)
        if self.checking:
            expect_splits(self.gather_json([list(sent), list(received)]))
        begun = time.monotonic()
        try:
            self._wait(
                dist.all_to_all_single(
                    _bytes(out), _bytes(x), arrive, leave, group=self.group, async_op=True
                )
            )
        except RuntimeError as error:
            raise self._lost("all_to_all", begun, error) from error
        return out

    def barrier(self) -> None:
        """Wait until every rank has called this."""
        self.agree("barrier")
        begun = time.monotonic()
        try:
            # nccl must know which GPU is meant.
            own = self.device.index if self.device.type == "cuda" else None
            ids = None if own is None else [own]
            self._wait(dist.barrier(group=self.group, device_ids=ids, async_op=True))
        except RuntimeError as error:
            raise self._lost("barrier", begun, error) from error

    def agree(self, call: str, *facts: Any) -> None:
        """Raise on all ranks if they make different calls: the first of a kind, or any."""
        check = self._check
        if check is None:
            super().agree(call, *facts)
            return
        kind = (call, *facts)
        if check.passes(kind) and not self.checking:
            return
        begun = time.monotonic()
        try:
            check.compare(self.group, kind)
        except RuntimeError as error:
            raise self._lost(call, begun, error) from error

    def _wait(self, work: Any) -> None:
        if work is None:
            return
        # Waiting for a GPU with a time limit would block the host.
        if self._check is None or self.device.type != "cpu":
            work.wait()
        else:
            self._check.wait(self.group, work)

    def _batched(self, begin: Callable[..., Any], message: Message) -> dist.P2POp:
        return dist.P2POp(
            begin, _bytes(message.tensor), group=self.group, group_peer=message.peer
        )

    def beside(self) -> "GroupCommunicator":
        """Return another one between the same ranks, over gloo, for a thread of its own."""
        begun = time.monotonic()
        try:
            group = (self._another or self._new_group)()
            return GroupCommunicator(group, checking=self.checking)
        except RuntimeError as error:
            raise self._lost("making another group", begun, error) from error

    def _new_group(self) -> dist.ProcessGroup:
        ranks = dist.get_process_group_ranks(self.group)
        limit = timedelta(seconds=current().cluster.timeout)
        group = dist.new_group(ranks, limit, "gloo", use_local_synchronization=True)
        return cast(dist.ProcessGroup, group)

    def _lost(
        self, what: str, begun: float, error: RuntimeError, peer: int | None = None
    ) -> CommunicationError:
        """The backend's exception, as an error that says which rank waited for which."""
        # Backends name their source before the first sentence and give advice after it.
        reason = re.sub(r"^\[[^]]*\]\s*", "", str(error).partition("\n")[0])
        other = "another rank" if peer is None else f"rank {peer}"
        return CommunicationError(
            f"rank {self.rank} of {self.size} lost {other}: {what} did not end after "
            f"{time.monotonic() - begun:.1f} s ({reason.partition('. ')[0]}). It may have "
            "stopped, or cannot be reached, or waits in another call: look at its output "
            "first. Continue a run with checkpoints with `--resume`; if a rank is only "
            "slow, raise `cluster.timeout`"
        )


def _expect_contiguous(x: Tensor) -> None:
    # Backends would read and write memory outside the view.
    if not x.is_contiguous() or x.is_conj() or x.is_neg():
        raise ArgumentError(
            f"a tensor of shape {tuple(x.shape)} and strides {x.stride()} is to be changed in "
            "place, and is not contiguous: use the function of the same name, or "
            "`x.contiguous()`"
        )


def _bytes(x: Tensor) -> Tensor:
    """The bytes of a contiguous tensor, as a flat view."""
    # A dim of one element may have any stride, and then its bytes could not be seen.
    return x.as_strided((x.numel(),), (1,)).view(torch.uint8)


class _Works(Pending):
    __slots__ = ("_begun", "_messages", "_owner", "_works")

    def __init__(
        self,
        works: Sequence[Any],
        messages: Sequence[Message],
        begun: float,
        owner: GroupCommunicator,
    ) -> None:
        self._works = works
        self._messages = messages
        self._begun = begun
        self._owner = owner

    def wait(self) -> None:
        """Wait until all have been sent and received."""
        at = 0
        try:
            for at, work in enumerate(self._works):  # noqa: B007  it is asked for below
                work.wait()
        except RuntimeError as error:
            peer = self._messages[at].peer if self._messages else None
            raise self._owner._lost("a message", self._begun, error, peer) from error
