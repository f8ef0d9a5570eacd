"""`all_or_raise`: work on every rank; when one fails, all raise."""

from collections.abc import Callable
from typing import TypeVar

from hotgrid import errors
from hotgrid.errors import HotgridError

from ._communicator import Communicator

Result = TypeVar("Result")


def all_or_raise(communicator: Communicator, work: Callable[[], Result]) -> Result:
    """Do this rank's part of some work; when one rank fails, all raise.

    Without it, the others would continue and wait for the one that failed. All ranks call
    it, and the work itself must not communicate with other ranks.

    Args:
        communicator: The ranks.
        work: What this rank does.

    Returns:
        What the work of this rank returned.

    Raises:
        HotgridError: The first rank that failed did so; on that rank, what it raised. On
            the others the error is of the same class and begins with the rank.

    Example:
        >>> all_or_raise(SingleRank(), lambda: 2 + 3)
        5
    """
    done: list[Result] = []
    problem: HotgridError | None = None
    try:
        done.append(work())
    except HotgridError as found:
        problem = found
    replies = communicator.gather_json(problem and [type(problem).__name__, str(problem)])
    if problem is not None:
        raise problem
    for rank, other in enumerate(replies):
        if other is not None:
            raise getattr(errors, other[0], HotgridError)(f"rank {rank}: {other[1]}")
    return done[0]
