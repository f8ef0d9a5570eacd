"""The state of a torch optimizer as tensors, whose names say which Python types they were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError

_DTYPES = {"bool": torch.bool, "int": torch.int64, "float": torch.float64}


def packed(name: str, value: Any) -> tuple[str, Tensor]:
    """Return a value as a tensor, by a name with its kind, such as `step:int`.

    Raises:
        ArgumentError: It is neither a tensor nor a number, None, or a tuple of floats.
    """
    if isinstance(value, Tensor):
        return name, value
    if value is None:
        return f"{name}:none", torch.zeros(())
    if isinstance(value, tuple) and value and all(isinstance(x, float) for x in value):
        return f"{name}:floats", torch.tensor(value, dtype=torch.float64)
    # In this order: a bool is an int.
    for kind in (bool, int, float):
        if isinstance(value, kind):
            return f"{name}:{kind.__name__}", torch.tensor(value, dtype=_DTYPES[kind.__name__])
    raise ArgumentError(
        f"the optimizer keeps `{name}`, a {type(value).__name__}, which cannot be saved; "
        "expected tensors and numbers"
    )


def unpacked(name: str, tensor: Tensor) -> tuple[str, Any]:
    """Return the value that `packed` was given."""
    plain, _, kind = name.rpartition(":")
    if kind in _DTYPES and plain:
        return plain, tensor.item()
    if kind == "floats":
        return plain, tuple(tensor.tolist())
    return (plain, None) if kind == "none" else (name, tensor)


class GroupEntries:
    """The entries of an optimizer's groups besides parameters, such as a count of steps.

    Args:
        groups: The groups by name, before the first step.
    """

    def __init__(self, groups: Mapping[str, dict[str, Any]]) -> None:
        self._groups = groups
        self._first = {name: _copied(group) for name, group in groups.items()}

    def changed(self) -> dict[str, dict[str, Any]]:
        """Return the entries of every group that differ from those at first."""
        return {
            name: {
                key: value
                for key, value in group.items()
                if key != "params"
                and not (key in self._first[name] and _same(value, self._first[name][key]))
            }
            for name, group in self._groups.items()
        }

    def load(self, changed: Mapping[str, Mapping[str, Any]]) -> None:
        """Restore the entries to their values when `changed` returned this."""
        for name, group in self._groups.items():
            device = next((p.device for p in group["params"]), None)
            for key in group.keys() - self._first[name].keys() - {"params"}:
                del group[key]
            group.update(_copied(self._first[name]))
            for key, value in changed.get(name, {}).items():
                first = group.get(key)
                place = first.device if isinstance(first, Tensor) else device
                group[key] = value.to(place) if isinstance(value, Tensor) else value


def _copied(group: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of a group; those that can change in place are copied."""
    return {
        key: value.clone()
        if isinstance(value, Tensor)
        else value.copy()
        if isinstance(value, list | dict)
        else value
        for key, value in group.items()
        if key != "params"
    }


def _same(value: Any, first: Any) -> bool:
    if isinstance(value, Tensor) and isinstance(first, Tensor):
        return value.dtype == first.dtype and torch.equal(value, first.to(value.device))
    return value is first or (type(value) is type(first) and bool(value == first))
