"""The contents of a model as a key: equal for two models whose steps do the same."""

from collections.abc import Mapping
from functools import cached_property
from numbers import Number
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor

# Larger tensors are not compared.
_MOST_BYTES = 1 << 16


def held(owner: object) -> Any:
    """The contents of a model, equal for two with the same; for unknown things never equal."""
    return _held(owner, owner, {})


def _held(value: Any, owner: object, known: dict[int, Any]) -> Any:
    if value is None or isinstance(value, str | bytes | Number | type | torch.dtype):
        return type(value), repr(value)
    if isinstance(value, FunctionType):
        return value
    if isinstance(value, MethodType) and value.__self__ is owner:
        return value.__func__
    if id(value) not in known:
        # What holds itself is unknown.
        known[id(value)] = object()
        known[id(value)] = _made_of(value, owner, known)
    return known[id(value)]


def _made_of(value: Any, owner: object, known: dict[int, Any]) -> Any:
    if isinstance(value, Tensor):
        return _numbers(value)
    parts = _parts(value)
    if parts is None:
        return object()
    return type(value), tuple((repr(k), _held(x, owner, known)) for k, x in parts.items())


def _numbers(x: Tensor) -> Any:
    if x.nbytes > _MOST_BYTES or x.requires_grad or x.is_meta:
        return object()
    plain = x.detach().cpu().contiguous().flatten().view(torch.uint8)
    return x.dtype, x.device, tuple(x.shape), plain.numpy().tobytes()


def _parts(value: Any) -> Mapping[Any, Any] | None:
    """The parts of an object, by name or index, without caches; None if unknown."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        ordered = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return dict(enumerate(ordered))
    inside = getattr(value, "__dict__", None)
    if not isinstance(inside, dict) or callable(value):
        return None
    kind = type(value)
    return {
        name: x
        for name, x in inside.items()
        if not isinstance(getattr(kind, name, None), cached_property)
    }
