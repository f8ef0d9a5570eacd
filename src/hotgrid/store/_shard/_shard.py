"""A tensor of which every rank holds a piece, and the plan of which rank writes which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from hotgrid.errors import ArgumentError

from ._dtypes import name_of
from ._region import Region, fault_in_cover

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class Shard:
    """The piece of a larger tensor that this rank holds.

    A rank without cells gives a tensor with none. Ranks may hold the same piece; then one
    of them writes it. Otherwise pieces must not overlap.

    Args:
        tensor: The piece, `[*shape]`, on any device.
        offset: Where it begins in the whole tensor, one number for each dim.
        global_shape: The shape of the whole tensor.

    Raises:
        ArgumentError: The piece is not within the whole.

    Example:
        >>> right = Shard(torch.zeros(9, 64, 32), offset=(0, 0, 32), global_shape=(9, 64, 64))
        >>> right.tensor.shape
        torch.Size([9, 64, 32])
    """

    tensor: Tensor
    offset: tuple[int, ...]
    global_shape: tuple[int, ...]

    def __post_init__(self) -> None:
        import torch

        if not isinstance(self.tensor, torch.Tensor):
            raise ArgumentError(
                f"`tensor` of a Shard is a {type(self.tensor).__name__}; expected a tensor"
            )
        for field in ("offset", "global_shape"):
            numbers = tuple(int(number) for number in getattr(self, field))
            object.__setattr__(self, field, numbers)
        shape, dims = tuple(self.tensor.shape), self.tensor.ndim
        fits = len(self.offset) == len(self.global_shape) == dims and all(
            start >= 0 and start + n <= limit
            for start, n, limit in zip(self.offset, shape, self.global_shape, strict=True)
        )
        if not fits:
            raise ArgumentError(
                f"a piece of shape {shape} at `offset` {self.offset} is not within "
                f"`global_shape` {self.global_shape}"
            )


class Spec(NamedTuple):
    """The dtype, by name, and the shape of a whole tensor."""

    dtype: str
    shape: tuple[int, ...]


def _is_text(name: str) -> bool:
    """Whether a file can hold it: half a surrogate pair is none."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_shards(tensors: Mapping[str, Tensor | Shard]) -> dict[str, Shard]:
    """Check what a caller saves. A plain tensor is a piece that is the whole."""
    import torch

    if not isinstance(tensors, Mapping):
        raise ArgumentError(
            f"`tensors` is a {type(tensors).__name__}; expected a dict of names and tensors"
        )
    shards: dict[str, Shard] = {}
    for name, value in tensors.items():
        if not isinstance(name, str) or name == "__metadata__" or not _is_text(name):
            raise ArgumentError(f"a tensor cannot be named {name!r}: use other text")
        if not isinstance(value, torch.Tensor | Shard):
            raise ArgumentError(
                f"`{name}` is a {type(value).__name__}; expected a tensor or a Shard "
                "(numbers and text belong in `extra`)"
            )
        tensor = value.tensor if isinstance(value, Shard) else value
        _check_tensor(name, tensor)
        shape = tuple(tensor.shape)
        shards[name] = (
            value if isinstance(value, Shard) else Shard(value, (0,) * len(shape), shape)
        )
    return shards


def _check_tensor(name: str, tensor: Tensor) -> None:
    import torch

    if hasattr(tensor, "to_local"):
        raise ArgumentError(f"`{name}` is a DTensor: give its local part as a Shard")
    if name_of(tensor.dtype) is None:
        hint = ": use `torch.view_as_real`" if tensor.is_complex() else ""
        raise ArgumentError(
            f"`{name}` is {tensor.dtype}, which safetensors does not support{hint}"
        )
    if tensor.layout is not torch.strided or tensor.is_meta:
        raise ArgumentError(f"`{name}` is {tensor.layout} on {tensor.device}: make it dense")


def described(shards: Mapping[str, Shard]) -> dict[str, Any]:
    """Describe the pieces of this rank for the other ranks, as JSON."""
    return {
        name: [name_of(s.tensor.dtype), s.global_shape, s.offset, list(s.tensor.shape)]
        for name, s in shards.items()
    }


class Plan(NamedTuple):
    """The tensors of a checkpoint, and for every rank the pieces that it writes."""

    tensors: dict[str, Spec]
    writes: list[dict[str, Region]]


def planned(descriptions: Sequence[Mapping[str, Any]]) -> Plan:
    """Decide which rank writes what, from all descriptions. The same on all ranks.

    Raises:
        ArgumentError: Ranks do not agree about a tensor, or their pieces leave gaps.
    """
    plan = Plan({}, [{} for _ in descriptions])
    pieces: dict[str, dict[Region, int]] = {}
    for rank, description in enumerate(descriptions):
        for name, (dtype, global_shape, offset, shape) in description.items():
            spec = Spec(dtype, tuple(global_shape))
            known = plan.tensors.setdefault(name, spec)
            if known != spec:
                raise ArgumentError(
                    f"the ranks do not agree about `{name}`: {spec.dtype} {spec.shape} on "
                    f"rank {rank}, {known.dtype} {known.shape} before it"
                )
            region = Region(tuple(offset), tuple(shape))
            if region.cells:
                pieces.setdefault(name, {}).setdefault(region, rank)
    for name, spec in plan.tensors.items():
        own = pieces.get(name, {})
        if fault := fault_in_cover(spec.shape, list(own)):
            raise ArgumentError(f"`{name}` of shape {spec.shape} cannot be saved: {fault}")
        for region, rank in own.items():
            plan.writes[rank][name] = region
    return plan
