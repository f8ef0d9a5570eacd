"""Arguments that every op has: dense tensors, and `out`."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError


def expect_array(name: str, value: Any) -> None:
    """Raise unless a value is a dense tensor.

    Raises:
        ArgumentError: It is not a tensor, or a sparse, nested or otherwise packed one.
    """
    if not isinstance(value, Tensor):
        raise ArgumentError(
            f"`{name}` must be a tensor, got {type(value).__name__}: use `torch.as_tensor(...)`"
        )
    if value.is_nested:
        raise ArgumentError(f"`{name}` is a nested tensor: use its parts, `{name}.unbind()`")
    if value.layout is not torch.strided:
        raise ArgumentError(f"`{name}` has the layout {value.layout}; use `{name}.to_dense()`")


def written(found: Mapping[str, Tensor], out: object, inputs: Mapping[str, Tensor]) -> None:
    """Copy results into the tensors that a caller gave for them.

    All of them are checked before the first is written.

    Args:
        found: Results, by the names that their targets have in an error.
        out: One tensor, or a tuple of as many as there are results.
        inputs: What the results were computed from, by name.

    Raises:
        ArgumentError: A target is not a tensor, does not match its result, or shares memory
            with an input or another target.
    """
    targets = (out,) if isinstance(out, Tensor) else out
    if not isinstance(targets, tuple | list) or len(targets) != len(found):
        wanted = "a tensor" if len(found) == 1 else f"a tuple of {len(found)} tensors"
        raise ArgumentError(f"`out` must be {wanted}, got {type(out).__name__}")
    taken = dict(inputs)
    for (name, result), target in zip(found.items(), targets, strict=True):
        _check(name, target, result)
        for other, tensor in taken.items():
            if _share_memory(target, tensor):
                raise ArgumentError(
                    f"`{name}` shares memory with `{other}`: give it memory of its own, "
                    "such as `torch.empty_like`"
                )
        taken[name] = target
    for result, target in zip(found.values(), targets, strict=True):
        target.copy_(result)


def _check(name: str, target: object, result: Tensor) -> None:
    if not isinstance(target, Tensor):
        raise ArgumentError(f"`{name}` must be a tensor, got {type(target).__name__}")
    for what, got, expected in (
        ("shape", tuple(target.shape), tuple(result.shape)),
        ("type", target.dtype, result.dtype),
        ("device", target.device, result.device),
    ):
        if got != expected:
            raise ArgumentError(f"`{name}` has the {what} {got}, and the result {expected}")
    if torch.is_grad_enabled() and (target.requires_grad or result.requires_grad):
        raise ArgumentError(f"`{name}` cannot be used where gradients are wanted: leave it out")
    sizes = zip(target.shape, target.stride(), strict=True)
    if any(size > 1 and stride == 0 for size, stride in sizes):
        raise ArgumentError(
            f"`{name}` of shape {tuple(target.shape)} was expanded, so that several of its "
            "elements share memory: use `.clone()`"
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
