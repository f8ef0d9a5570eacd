"""The ranks that save and load together, the minimal interface."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from hotgrid.errors import ArgumentError, DamagedError, StoreError

Result = TypeVar("Result")
_KINDS = {kind.__name__: kind for kind in (ArgumentError, DamagedError, StoreError)}


class Group(Protocol):
    """The processes that share a checkpoint; a `hotgrid.cluster.Communicator` is one.

    An asynchronous save calls `gather_json` from its own thread. So the group must be one
    that nothing else uses: with `torch.distributed`, a new gloo group for checkpoints
    alone. If another rank is lost, `gather_json` raises; it must not wait forever.
    """

    @property
    def rank(self) -> int:
        """Which of the processes this is, from 0."""
        ...

    @property
    def size(self) -> int:
        """How many there are."""
        ...

    def gather_json(self, value: Any) -> list[Any]:
        """Return the value of every rank, in their order, on every rank.

        Values are small JSON values: text, numbers, lists, dicts, None.
        """
        ...


class OneProcess:
    """The group of a process that has no others."""

    rank = 0
    size = 1

    def gather_json(self, value: Any) -> list[Any]:
        """Return the only value there is."""
        return [value]


def all_or_raise(group: Group, work: Callable[[], Result]) -> Result:
    """Do this rank's part of the work. When one rank fails, all raise.

    The one that failed raises its error, the others its message. Without this they
    would continue, and wait for the one that failed.
    """
    results: list[Result] = []
    problem: Exception | None = None
    try:
        results.append(work())
    except Exception as found:  # noqa: BLE001  whatever it is, the others must know
        problem = found
    replies = group.gather_json(
        None if problem is None else [type(problem).__name__, str(problem)]
    )
    if problem is not None:
        raise problem
    for rank, other in enumerate(replies):
        if other is not None:
            raise _KINDS.get(other[0], StoreError)(f"rank {rank}: {other[1]}")
    return results[0]
