"""Calls like earlier ones, recognised by one cheap check of their tensors.

Asking two tensors for types, devices, shapes and strides takes 4 us. torch's compiler has a
check of all of these at once against tensors seen before: 0.4 us. It also notices transforms,
autocast, lazy views and subclasses, which change the dispatch keys of a tensor.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.cuda import is_current_stream_capturing

from hotgrid.tensors._torch_private import count_dispatch_modes, in_forward_mode, tensor_guards

_MOST_KEYS = 4096
_MOST_ALIKE = 16  # checks for one key; they are tried in turn


class FastCalls:
    """Functions of tensors, by a name and by what the tensors are like."""

    def __init__(self) -> None:
        # By name, number of tensors and shape of the first: check, function, on a GPU or not.
        self._known: dict[
            Hashable, list[tuple[Callable[..., bool], Callable[..., Any], bool]]
        ] = {}

    def find(self, name: Hashable, tensors: Sequence[Tensor]) -> Callable[..., Any] | None:
        """Return the function kept for tensors like these; None while traced or recorded."""
        # The check of torch does not notice these modes.
        if count_dispatch_modes() or in_forward_mode():
            return None
        try:
            for alike, run, on_gpu in self._known[name, len(tensors), tensors[0].shape]:
                if alike(*tensors):
                    return None if on_gpu and is_current_stream_capturing() else run
        # Not kept; an argument that is not a dense tensor; a name that cannot be hashed.
        except (AttributeError, KeyError, RuntimeError, TypeError):
            pass
        return None

    def keep(self, name: Hashable, tensors: Sequence[Tensor], run: Callable[..., Any]) -> None:
        """Let later calls with tensors like these find a function, if the name has a hash."""
        alike = check_of(tensors)
        if alike is None or not _has_hash(name):
            return
        if len(self._known) >= _MOST_KEYS:
            self._known.clear()
        others = self._known.setdefault((name, len(tensors), tensors[0].shape), [])
        if len(others) >= _MOST_ALIKE:
            others.clear()
        others.append((alike, run, tensors[0].is_cuda))


def check_of(tensors: Sequence[Tensor]) -> Callable[..., bool] | None:
    """Return a check for tensors like these; None if this torch has none.

    The same tensor given twice never passes, which is slow but not wrong.
    """
    try:
        alike = tensor_guards()(
            *tensors,
            dynamic_dims_sizes=[list(x.shape) for x in tensors],
            dynamic_dims_strides=[list(x.stride()) for x in tensors],
        ).check
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return None
    if not any(x.requires_grad for x in tensors):
        return alike
    # It does not ask whether gradients are recorded.
    recorded = torch.is_grad_enabled()
    return lambda *others: alike(*others) and torch.is_grad_enabled() is recorded


def _has_hash(name: Hashable) -> bool:
    try:
        hash(name)
    except TypeError:  # the name holds a list, such as those that torch gives to operators
        return False
    return True
