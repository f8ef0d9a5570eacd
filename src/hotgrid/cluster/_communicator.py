"""`Communicator`: one rank's access to a group, and `SingleRank`, a group of one."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError

from ._call_check import described, mismatch
from ._handles import named

Reduction = Literal["sum", "max"]


class Message(NamedTuple):
    """A tensor on its way to another rank or from it.

    Attributes:
        tensor: What leaves, or where to put what arrives; contiguous, of any dtype.
        peer: The other rank.
        tag: Distinguishes messages between the same two ranks.
    """

    tensor: Tensor
    peer: int
    tag: int = 0


def plain(x: Tensor) -> Tensor:
    """The same numbers, contiguous, and with a lazy conjugate resolved."""
    return x.resolve_conj().resolve_neg().contiguous()


class Pending(ABC):
    """Pending messages; do not touch their tensors until `wait` returns."""

    @abstractmethod
    def wait(self) -> None:
        """Wait until all have been sent and received."""


class Communicator(ABC):
    """One rank's access to a group of ranks.

    Every rank of the group holds its own, and all call the same methods in the same
    order. Methods change tensors in place and have no gradients; the functions of the package
    (`all_reduce`, `all_gather`, ...) are the differentiable ones.

    Attributes:
        rank: Which of the ranks this is, from 0.
        size: How many there are.
        device: The device of its own small tensors.
        checking: Whether ranks compare every collective call before it is made. Otherwise
            only the first call of each kind is compared, see `agree`.
        name: How compiled code finds it.
    """

    def __init__(self, rank: int, size: int, device: torch.device, checking: bool) -> None:
        self.rank = rank
        self.size = size
        self.device = device
        self.checking = checking
        self.name = named(self)

    @abstractmethod
    def post(self, sends: Sequence[Message], receives: Sequence[Message]) -> Pending:
        """Begin to send and to receive, without waiting."""

    @abstractmethod
    def all_reduce(self, x: Tensor, op: Reduction = "sum") -> None:
        """Put the sum or the largest over all ranks into `x`, on every rank."""

    @abstractmethod
    def reduce(self, x: Tensor, target: int) -> None:
        """Put the sum over all ranks into `x` on rank `target`, and anything elsewhere."""

    @abstractmethod
    def broadcast(self, x: Tensor, source: int) -> None:
        """Put what rank `source` has in `x` into it on every rank."""

    @abstractmethod
    def all_gather(self, x: Tensor) -> Tensor:
        """Return the `x` of all ranks, `[size, *x.shape]`."""

    @abstractmethod
    def reduce_scatter(self, x: Tensor) -> Tensor:
        """Return the sum over all ranks of the own part of `x`, `[size, *part]`."""

    @abstractmethod
    def all_to_all(self, x: Tensor, sent: Sequence[int], received: Sequence[int]) -> Tensor:
        """Return parts of a flat `x` from every rank, with the number of elements each way."""

    @abstractmethod
    def barrier(self) -> None:
        """Wait until every rank has called this."""

    @abstractmethod
    def beside(self) -> "Communicator":
        """Return another one between the same ranks, on the CPU, for a thread of its own.

        All ranks call it.
        """

    def send(self, x: Tensor, target: int, tag: int = 0) -> None:
        """Send a tensor, and wait until it is sent."""
        self.post([Message(x, target, tag)], []).wait()

    def receive(self, x: Tensor, source: int, tag: int = 0) -> None:
        """Wait until a tensor has arrived in `x`."""
        self.post([], [Message(x, source, tag)]).wait()

    def gather_json(self, value: Any) -> list[Any]:
        """Return small values of all ranks, on every rank.

        Args:
            value: Any JSON value; tuples come back as lists.

        Example:
            >>> SingleRank().gather_json({"rank": 0, "size": (2, 3)})
            [{'rank': 0, 'size': [2, 3]}]
        """
        text = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
        length = torch.tensor([len(text)], device=self.device)
        lengths = self.all_gather(length).flatten().tolist()
        # Few sizes: the first call of each is compared between ranks.
        size = max(64, 1 << (max(lengths) - 1).bit_length())
        padded = torch.zeros(size, dtype=torch.uint8, device=self.device)
        padded[: len(text)] = text
        rows = self.all_gather(padded).cpu()
        return [
            json.loads(bytes(row[:n].tolist())) for row, n in zip(rows, lengths, strict=True)
        ]

    def agree(self, call: str, *facts: Any) -> None:
        """Raise on all ranks if they make different calls.

        All collectives call it first. A `GroupCommunicator` compares the first call of each
        kind, which is the call with its facts, or every call if it is `checking`. Other
        communicators compare only if they are `checking`. If ranks differ in a call of
        which each has made its own kind before, only `checking` finds out.

        Args:
            call: Its name.
            facts: What must be equal on all ranks, such as the dtype and the shape; hashable.

        Raises:
            ArgumentError: They differ; the message shows every rank. All ranks raise it.

        Example:
            >>> SingleRank(checking=True).agree("all_reduce", torch.float32, (3, 4))
        """
        if not self.checking:
            return
        calls = self.gather_json(described((call, *facts)))
        if len(set(calls)) > 1:
            raise ArgumentError(mismatch(calls))


class SingleRank(Communicator):
    """The communicator of a single rank: everything is already where it should be.

    Example:
        >>> alone = SingleRank()
        >>> alone.rank, alone.size
        (0, 1)
        >>> x = torch.tensor([1.0, 2.0])
        >>> alone.all_reduce(x)
        >>> x
        tensor([1., 2.])
    """

    def __init__(self, device: torch.device | str = "cpu", *, checking: bool = False) -> None:
        super().__init__(0, 1, torch.device(device), checking)

    def post(self, sends: Sequence[Message], receives: Sequence[Message]) -> Pending:
        """Raise: there is no other rank."""
        if sends or receives:
            raise ArgumentError(
                f"there is no rank {(*sends, *receives)[0].peer} here: a single rank has "
                "no other to send to or to receive from"
            )
        return _Done()

    def all_reduce(self, x: Tensor, op: Reduction = "sum") -> None:
        """Leave `x` unchanged."""

    def reduce(self, x: Tensor, target: int) -> None:
        """Leave `x` unchanged."""

    def broadcast(self, x: Tensor, source: int) -> None:
        """Leave `x` unchanged."""

    def all_gather(self, x: Tensor) -> Tensor:
        """Return a copy of `x`, `[1, *x.shape]`."""
        return x.clone()[None]

    def reduce_scatter(self, x: Tensor) -> Tensor:
        """Return a copy of the only part."""
        return x[0].clone()

    def all_to_all(self, x: Tensor, sent: Sequence[int], received: Sequence[int]) -> Tensor:
        """Return a copy of `x`."""
        return x.clone()

    def barrier(self) -> None:
        """Return at once."""

    def beside(self) -> "SingleRank":
        """Return another one."""
        return SingleRank()


class _Done(Pending):
    def wait(self) -> None:
        """Return at once."""
