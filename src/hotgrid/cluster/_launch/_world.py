"""The ranks that a launcher started, found through environment variables."""

import atexit
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed import (
    PrefixStore,  # pyright: ignore[reportPrivateImportUsage]
    Store,  # pyright: ignore[reportPrivateImportUsage]
)
from torch.distributed.rendezvous import rendezvous

from hotgrid import _version
from hotgrid.cluster._communicator import Communicator, SingleRank
from hotgrid.cluster._group import GroupCommunicator
from hotgrid.config import current
from hotgrid.errors import ArgumentError, CommunicationError, HotgridError

from ._launch import follow_launcher, launched, restarts

# Seconds that ranks have to connect.
_START = 300.0
_DROPPED_AFTER = 0.1


def world(device: torch.device | str = "cpu", *, checking: bool = False) -> Communicator:
    """All ranks that were started together: by `hotgrid run --mesh` or torchrun.

    Joins them at the first call. Without a launcher there is one rank, this one; see also
    `follow_slurm`. On GPUs
    each rank of a host takes its own, unless `device` has a number.

    Args:
        device: Where the tensors that travel live; it decides between gloo and NCCL.
        checking: Compare every collective call between ranks before it is made. Otherwise
            only the first call of each kind is compared. Give the same on all ranks.

    Raises:
        ArgumentError: There is no such kind of device, or torchrun was started in such a way
            that restarted ranks could not connect.
        CommunicationError: The other ranks could not be found in time.
        HotgridError: Ranks have different versions of hotgrid or torch.

    Example:
        >>> world().size
        1
    """
    try:
        device = torch.device(device)
    except RuntimeError as problem:
        reason = str(problem).splitlines()[0]
        raise ArgumentError(
            f"the device {str(device)!r} cannot be used here: {reason}"
        ) from None
    if not dist.is_available() or not launched():
        return SingleRank(device, checking=checking)
    joining = not dist.is_initialized()
    if joining:
        _join(device)
    group = dist.group.WORLD
    if group is None:
        return SingleRank(device, checking=checking)
    communicator = GroupCommunicator(group, device, checking=checking)
    if joining:
        check_versions(communicator)
    return communicator


def check_versions(communicator: Communicator) -> None:
    """Raise unless all ranks have the same hotgrid and torch."""
    mine = f"hotgrid {_version.__version__} and torch {torch.__version__}"
    versions = communicator.gather_json(mine)
    for rank, theirs in enumerate(versions):
        if theirs != versions[0]:
            raise HotgridError(
                f"ranks run different versions: rank 0 has {versions[0]}, rank {rank} has "
                f"{theirs}; install the same on all hosts"
            )


def _join(device: torch.device) -> None:
    follow_launcher()
    settings = current().cluster
    backend = settings.backend
    if backend == "auto":
        backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    if device.type == "cuda" and device.index is None and torch.cuda.is_available():
        torch.cuda.set_device(
            int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count()
        )
    _expect_restarts_to_work()
    # Hosts may start minutes apart, and only then answer within the timeout.
    patience = timedelta(seconds=max(settings.timeout, _START))
    try:
        store, rank, size = _meeting_place(patience)
        if store.add("arrived", 1) == size:
            store.set("all-arrived", "")
        store.wait(["all-arrived"], patience)
        dist.init_process_group(
            backend,
            timeout=timedelta(seconds=settings.timeout),
            store=store,
            rank=rank,
            world_size=size,
        )
    except (RuntimeError, ValueError) as problem:
        raise CommunicationError(
            f"rank {os.environ.get('RANK')} of {os.environ.get('WORLD_SIZE')} could not join "
            f"the others at {os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')} "
            f"within {patience.total_seconds():g} s: {str(problem).splitlines()[0]}. Check "
            "that all ranks were started, that hosts reach each other, and that "
            "`GLOO_SOCKET_IFNAME` names the network between them"
        ) from problem
    atexit.register(_leave)


def _meeting_place(patience: timedelta) -> tuple[Store, int, int]:
    """The store in which ranks find each other's addresses, separate for each attempt."""
    store, rank, size = next(rendezvous("env://", timeout=patience))
    if _store_outlives_ranks():
        store = PrefixStore(f"attempt-{restarts()}", store)
    return store, rank, size


def _store_outlives_ranks() -> bool:
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def _expect_restarts_to_work() -> None:
    hosts = int(os.environ.get("GROUP_WORLD_SIZE", "1"))
    again = int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0"))
    if hosts > 1 and again and _store_outlives_ranks():
        # Each host counts its own restarts, so nothing common identifies attempts.
        raise ArgumentError(
            "torchrun would give restarted ranks the addresses of lost ones: set "
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 on all hosts, or leave out "
            "`--max-restarts`"
        )


def _leave() -> None:
    if not dist.is_initialized():
        return
    dist.destroy_process_group()
    # A thread of gloo drops the tensors of the last collective after that has ended. If Python
    # has begun to exit by then, dropping them aborts the process (pytorch/pytorch#179291).
    time.sleep(_DROPPED_AFTER)
