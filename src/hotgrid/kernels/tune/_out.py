"""Results that go where the caller wants them."""

from collections.abc import Mapping

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError


def written(found: Mapping[str, Tensor], out: object, inputs: Mapping[str, Tensor]) -> None:
    """Copy results into the tensors that a caller gave for them.

    All of them are looked at before the first is written.

    Args:
        found: Results, by the names that the places for them have in an error.
        out: One tensor, or a tuple of as many as there are results.
        inputs: What the results were computed of, by name.

    Raises:
        ArgumentError: A place is none, does not fit its result, or shares memory with
            an input or another place.
    """
    places = (out,) if isinstance(out, Tensor) else out
    if not isinstance(places, tuple | list) or len(places) != len(found):
        wanted = "a tensor" if len(found) == 1 else f"a tuple of {len(found)} tensors"
        raise ArgumentError(f"`out` must be {wanted}, got {type(out).__name__}")
    taken = dict(inputs)
    for (name, result), place in zip(found.items(), places, strict=True):
        _check(name, place, result)
        for other, tensor in taken.items():
            if _share_memory(place, tensor):
                raise ArgumentError(
                    f"`{name}` shares memory with `{other}`: give it memory of its own, "
                    "such as `torch.empty_like`"
                )
        taken[name] = place
    for result, place in zip(found.values(), places, strict=True):
        place.copy_(result)


def _check(name: str, place: object, result: Tensor) -> None:
    if not isinstance(place, Tensor):
        raise ArgumentError(f"`{name}` must be a tensor, got {type(place).__name__}")
    for what, got, expected in (
        ("shape", tuple(place.shape), tuple(result.shape)),
        ("type", place.dtype, result.dtype),
        ("device", place.device, result.device),
    ):
        if got != expected:
            raise ArgumentError(f"`{name}` has the {what} {got}, and the result {expected}")
    if torch.is_grad_enabled() and (place.requires_grad or result.requires_grad):
        raise ArgumentError(f"`{name}` cannot be used where gradients are wanted: leave it out")
    sizes = zip(place.shape, place.stride(), strict=True)
    if any(size > 1 and stride == 0 for size, stride in sizes):
        raise ArgumentError(
            f"`{name}` of shape {tuple(place.shape)} was expanded, so that several of its "
            "elements are one: use `.clone()`"
        )


def _share_memory(one: Tensor, other: Tensor) -> bool:
    if not one.numel() or not other.numel() or one.device != other.device:
        return False
    (begin, end), (start, stop) = _extent(one), _extent(other)
    return begin < stop and start < end


def _extent(tensor: Tensor) -> tuple[int, int]:
    """The bytes from its first element to its last."""
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    last = sum((size - 1) * stride for size, stride in sizes)
    begin = tensor.data_ptr()
    return begin, begin + (last + 1) * tensor.element_size()
