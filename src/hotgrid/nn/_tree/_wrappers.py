"""How the tree treats a class: by its name, or as a wrapper that is looked through."""

import re
from dataclasses import dataclass

from torch import nn

# The module and name of a class, and the field of the module that it wraps. By name, since
# importing them all would take seconds.
_WRAPPERS = {
    ("torch._dynamo.eval_frame", "OptimizedModule"): "_orig_mod",
    ("torch.nn.parallel.distributed", "DistributedDataParallel"): "module",
    ("torch.nn.parallel.data_parallel", "DataParallel"): "module",
    ("torch.distributed.fsdp.fully_sharded_data_parallel", "FullyShardedDataParallel"): (
        "_fsdp_wrapped_module"
    ),
    (
        "torch.distributed.algorithms._checkpoint.checkpoint_wrapper",
        "CheckpointWrapper",
    ): "_checkpoint_wrapped_module",
    ("torch.optim.swa_utils", "AveragedModel"): "module",
}


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """The facts that nodes of one class share.

    Attributes:
        type: The name of the class, as expressions know it.
        inner: For a wrapper, the field of the module that it wraps.
        counts: Whether children are members of a list.
    """

    type: str
    inner: str | None
    counts: bool


def kind_of(cls: type) -> Kind:
    """Return how the tree treats modules of a class."""
    for base in cls.__mro__:
        inner = _WRAPPERS.get((base.__module__, base.__qualname__))
        if inner is not None:
            return Kind(cls.__name__, inner, counts=False)
    counts = issubclass(cls, (nn.ModuleList, nn.Sequential, nn.ParameterList))
    return Kind(re.sub(r"[^\w.-]|^(?=[\d.-])", "_", _unsharded(cls).__name__), None, counts)


def _unsharded(cls: type) -> type:
    """The class that FSDP2 (`fully_shard`, `replicate`) found and made a subclass of."""
    sharding = [base for base in cls.__bases__ if _shards(base)]
    plain = [base for base in cls.__bases__ if not _shards(base)]
    return plain[0] if sharding and plain else cls


def _shards(cls: type) -> bool:
    return any(
        base.__name__ == "FSDPModule" and base.__module__.startswith("torch.distributed.")
        for base in cls.__mro__
    )
