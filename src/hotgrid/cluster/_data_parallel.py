"""Modules trained on several ranks: a copy on each, or parameters split over them."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh

from hotgrid.errors import ArgumentError

from ._communicator import Communicator
from ._group import GroupCommunicator


def data_parallel(
    module: nn.Module, ranks: Communicator | DeviceMesh, *, bucket_megabytes: float = 25.0
) -> nn.Module:
    """Keep a copy of a module on every rank and average its gradients.

    Gradients are collected in buckets, and each bucket is sent while the backward pass
    continues. The parameters of rank 0 are copied to all others now.

    Gradient: the average over ranks, so a loss that is a mean over the local batch gives
    the gradient of the mean over all batches of equal size.

    Args:
        module: What is trained; it stays usable, and shares its parameters.
        ranks: The ranks, or one axis of a device mesh such as `mesh["data"]`.
        bucket_megabytes: Gradients sent at once; smaller begins earlier, larger costs less.

    Returns:
        The module to call in training, and to keep: without it gradients stay local.
        `module` itself on a single rank.

    Raises:
        ArgumentError: The device mesh has more than one axis.

    Example:
        >>> layer = torch.nn.Linear(2, 1)
        >>> data_parallel(layer, SingleRank()) is layer
        True
    """
    from torch.nn.parallel import DistributedDataParallel

    if not isinstance(ranks, GroupCommunicator | DeviceMesh):
        return module
    return DistributedDataParallel(
        module,
        process_group=_group(ranks),
        bucket_cap_mb=bucket_megabytes,
        gradient_as_bucket_view=True,
    )


def fully_sharded(
    module: nn.Module,
    ranks: Communicator | DeviceMesh,
    *,
    layers: type[nn.Module] | tuple[type[nn.Module], ...] = (),
    compute: torch.dtype | None = None,
) -> nn.Module:
    """Cut the parameters of a module, their gradients and optimizer state over ranks.

    Each layer is gathered just before it runs and let go after; the next one is fetched
    meanwhile. Gradients are averaged over ranks, as with `data_parallel`. Parameters
    become `DTensor`s: build the optimizer afterwards.

    Args:
        module: What is trained; it is changed in place.
        ranks: The ranks, or a device mesh: with one axis parameters are cut over it, with
            two they are repeated over the first and cut over the second.
        layers: The classes of layers that are gathered one at a time, such as the
            transformer block. What belongs to none is gathered together.
        compute: Dtype of computing, such as `torch.bfloat16`; gradients are then summed
            in float32. None keeps that of the parameters.

    Returns:
        The same module; untouched on a single rank.

    Raises:
        ArgumentError: No layer of these classes is in the module.

    Example:
        >>> layer = torch.nn.Linear(2, 1)
        >>> fully_sharded(layer, SingleRank()) is layer
        True
    """
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    if not isinstance(ranks, GroupCommunicator | DeviceMesh):
        return module
    chosen = [each for each in module.modules() if layers and isinstance(each, layers)]
    if layers and not chosen:
        raise ArgumentError(
            f"no layer of {layers!r} is in the module {type(module).__name__}; it has "
            f"{', '.join(sorted({type(each).__name__ for each in module.modules()}))}"
        )
    mesh = ranks
    if isinstance(mesh, GroupCommunicator):
        mesh = DeviceMesh.from_group(mesh.group, mesh.device.type)
    policy = MixedPrecisionPolicy()
    if compute is not None:
        policy = MixedPrecisionPolicy(param_dtype=compute, reduce_dtype=torch.float32)
    # Inner layers first, the whole last.
    for each in dict.fromkeys((*reversed(chosen), module)):
        fully_shard(each, mesh=mesh, mp_policy=policy)
    return module


def _group(ranks: GroupCommunicator | DeviceMesh) -> dist.ProcessGroup:
    if isinstance(ranks, GroupCommunicator):
        return ranks.group
    if ranks.ndim != 1:
        raise ArgumentError(
            f"the device mesh has {ranks.ndim} axes, {ranks.mesh_dim_names}; give the one of "
            'the data, such as `mesh["data"]`'
        )
    return ranks.get_group()
