"""Which tensors to load from a checkpoint, which parts of them, and where to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from hotgrid.errors import ArgumentError, near

from ._shard import Region, Shard, Spec, dtype_of, whole

if TYPE_CHECKING:
    from torch import Tensor

    from hotgrid.tensors import Slices

    Part: TypeAlias = Tensor | Shard | Slices | str | slice | tuple[slice, ...] | None
    Wanted: TypeAlias = Iterable[str] | Mapping[str, Part]


class Target(NamedTuple):
    """A requested region of a tensor, and the tensor to fill with it, if one is given."""

    region: Region
    into: Tensor | None = None


def targets(saved: Mapping[str, Spec], wanted: Wanted | None) -> dict[str, Target]:
    """Compare what is requested with what was saved.

    Raises:
        ArgumentError: A name is unknown, or a part or a tensor does not match.
    """
    if wanted is None:
        wanted = list(saved)
    if isinstance(wanted, str):
        raise ArgumentError(
            f"`wanted` is the text {wanted!r}; for one tensor write [{wanted!r}]"
        )
    parts: Mapping[str, Part] = wanted if isinstance(wanted, Mapping) else dict.fromkeys(wanted)
    found: dict[str, Target] = {}
    for name, part in parts.items():
        if name not in saved:
            hint = near(name, saved) or f"; it has {', '.join(saved) or 'none'}"
            raise ArgumentError(f"the checkpoint has no tensor {name!r}{hint}")
        found[name] = _target(name, part, saved[name])
    return found


def _target(name: str, part: Part, spec: Spec) -> Target:
    import torch

    if part is None:
        return Target(whole(spec.shape))
    if isinstance(part, torch.Tensor):
        part = Shard(part, (0,) * part.ndim, tuple(part.shape))
    if isinstance(part, Shard):
        if part.global_shape != spec.shape:
            raise ArgumentError(
                f"`{name}` was saved with the shape {spec.shape}, and requested with "
                f"{part.global_shape}"
            )
        if part.tensor.dtype != dtype_of(spec.dtype):
            raise ArgumentError(
                f"`{name}` was saved as {dtype_of(spec.dtype)}, and the tensor to fill is "
                f"{part.tensor.dtype}"
            )
        _expect_to_be_filled(name, part.tensor)
        return Target(Region(part.offset, tuple(part.tensor.shape)), part.tensor)
    return Target(_sliced(name, part, spec.shape))


def _expect_to_be_filled(name: str, tensor: Tensor) -> None:
    """Refuse what cannot be written into, before anything is."""
    import torch

    shared = any(
        n > 1 and step == 0 for n, step in zip(tensor.shape, tensor.stride(), strict=True)
    )
    foreign = tensor.is_inference() and not torch.is_inference_mode_enabled()
    if shared or foreign:
        why = "its elements share memory" if shared else "it was made in inference mode"
        raise ArgumentError(f"`{name}` cannot be loaded into the tensor given: {why}")


def _sliced(
    name: str, part: Slices | str | slice | tuple[slice, ...], shape: tuple[int, ...]
) -> Region:
    from hotgrid.tensors import Slices

    starts: list[int] = []
    sizes: list[int] = []
    for item in Slices(part).bound_to(shape).index:
        if not isinstance(item, slice) or item.step is not None:
            raise ArgumentError(
                f"`{Slices(part)}` of `{name}` takes single cells or every Nth cell: only "
                "slices like 3:4 can be loaded, cut the rest out afterwards"
            )
        starts.append(item.start)
        sizes.append(item.stop - item.start)
    return Region(tuple(starts), tuple(sizes))
