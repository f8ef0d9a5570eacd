"""`run_ranks`: real ranks in threads of one process, for trying out, teaching and tests."""

import itertools
import threading
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

import torch.distributed as dist
from torch.distributed import (
    HashStore,  # pyright: ignore[reportPrivateImportUsage]
    PrefixStore,  # pyright: ignore[reportPrivateImportUsage]
    Store,  # pyright: ignore[reportPrivateImportUsage]
)

from hotgrid.cluster._communicator import Communicator
from hotgrid.cluster._group import GroupCommunicator
from hotgrid.errors import ArgumentError, HotgridError
from hotgrid.tensors._torch_private import gloo_group

Result = TypeVar("Result")


def run_ranks(
    size: int,
    function: Callable[[Communicator], Result],
    *,
    timeout: float = 30.0,
    checking: bool = False,
) -> list[Result]:
    """Call a function once for every rank, each in a thread, and return what they return.

    The ranks communicate through gloo over the loopback device, as processes on one machine do,
    but start in milliseconds. The threads share the interpreter: this is for trying out and
    for tests, not for speed.

    Args:
        size: How many ranks.
        function: What each does, given its communicator.
        timeout: Seconds after which a rank that waits for another gives up.
        checking: Given to the communicators.

    Returns:
        The results in the order of ranks.

    Raises:
        ArgumentError: `size` is below 1.
        HotgridError: A rank did not return in time.
        Exception: What a rank raised, with a note that names the rank. The others then lose
            contact and end as well.

    Example:
        >>> def shifted(communicator):
        ...     x = torch.tensor([float(communicator.rank)])
        ...     return permute(x, communicator, {0: 1, 1: 2, 2: 0}).item()
        >>> run_ranks(3, shifted)
        [2.0, 0.0, 1.0]
    """
    if size < 1:
        raise ArgumentError(f"cannot run {size} ranks; use 1 or more")
    store = HashStore()
    results: dict[int, Result] = {}
    errors: list[BaseException] = []
    # A rank with nothing to send would leave before the others have connected.
    all_here = threading.Barrier(size, timeout=timeout)

    def body(rank: int) -> None:
        group: Any = None
        try:
            group = gloo_group(store, rank, size, timeout)
            results[rank] = _called(
                function, _communicator(group, store, timeout, checking), all_here
            )
        except BaseException as error:  # noqa: BLE001 - raised again by the caller's thread
            error.add_note(f"raised by rank {rank} of {size}")
            errors.append(error)
            # They would keep the group, and with it the connections that others wait on.
            cause: BaseException | None = error
            while cause is not None:
                traceback.clear_frames(cause.__traceback__)
                cause = cause.__cause__
        # The group ends here, without the GIL. DDP's reducer, which holds it too, would end
        # it with the GIL and wait for the group's threads, one of which may need the GIL.
        group = None

    threads = [
        threading.Thread(target=body, args=(rank,), name=f"rank-{rank}", daemon=True)
        for rank in range(size)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        # The group gives up first; this is for ranks that are stuck without waiting.
        thread.join(2 * timeout)
    if errors:
        raise errors[0]
    if late := [thread.name for thread in threads if thread.is_alive()]:
        raise HotgridError(f"{', '.join(late)} did not return within {2 * timeout:g} s")
    return [results[rank] for rank in range(size)]


def _called(
    function: Callable[[Communicator], Result],
    communicator: Communicator,
    all_here: threading.Barrier,
) -> Result:
    all_here.wait()
    return function(communicator)


def _communicator(
    group: dist.ProcessGroup, store: Store, timeout: float, checking: bool
) -> GroupCommunicator:
    rank, size = group.rank(), group.size()
    # Ranks create further groups in the same order, so the count identifies them.
    names = (f"beside-{count}" for count in itertools.count())

    def another() -> dist.ProcessGroup:
        return gloo_group(PrefixStore(next(names), store), rank, size, timeout)

    return GroupCommunicator(group, checking=checking, another=another)
