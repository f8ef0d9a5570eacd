"""The ranks that a launcher started, found through the environment it left."""

import atexit
import os
from datetime import timedelta

import torch
import torch.distributed as dist

from hotgrid.config import current

from ._communicator import Alone, Communicator
from ._group import GroupCommunicator


def world(device: torch.device | str = "cpu") -> Communicator:
    """All ranks that were started together: by `hotgrid run --mesh`, torchrun or SLURM.

    Joins them at the first call. Without a launcher there is one rank, this one.

    Args:
        device: Where the tensors that travel live; it decides between gloo and NCCL.

    Example:
        >>> world().size
        1
    """
    device = torch.device(device)
    if not dist.is_available() or int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return Alone(device)
    if not dist.is_initialized():
        settings = current().cluster
        backend = settings.backend
        if backend == "auto":
            backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
        dist.init_process_group(backend, timeout=timedelta(seconds=settings.timeout))
        atexit.register(_leave)
    group = dist.group.WORLD
    if group is None:
        return Alone(device)
    return GroupCommunicator(group, device)


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
