"""Calls with nothing special about them, which may take the short way to a candidate."""

from collections.abc import Hashable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.compiler import is_dynamo_compiling
from torch.nn import Parameter

# As in `_tracing`, but asked all at once: every call comes along here.
any_mode: Any = torch._C._len_torch_dispatch_stack
"""How many dispatch modes there are."""
_transforms: Any = torch._C._functorch.peek_interpreter_stack  # pyright: ignore[reportAttributeAccessIssue]
_recording: Any = torch._C._is_tracing
_autocast: Any = torch._C._is_any_autocast_enabled


def unwatched() -> bool:
    """Return whether there are no modes and no forward derivatives, which no guard notices."""
    return not any_mode() and forward_ad._current_level < 0


def plain(*tensors: Tensor | None) -> bool:
    """Return whether nobody traces or differentiates a call, and nothing is cast in it.

    What is no dense tensor may be taken for one; it has no signature.
    """
    return undisturbed(*tensors) and not wanted(tensors)


def undisturbed(*tensors: Tensor | None) -> bool:
    """Return the same, where a gradient may be wanted all the same."""
    if is_dynamo_compiling() or any_mode() or forward_ad._current_level >= 0:
        return False
    if _transforms() is not None or _recording() or _autocast():
        return False
    for x in tensors:
        kind = type(x)
        if kind is Tensor or kind is Parameter:
            if x.is_neg() or x._is_zerotensor():  # pyright: ignore[reportOptionalMemberAccess]
                return False
        elif x is not None:
            return False
    return True


def wanted(tensors: Sequence[Tensor | None]) -> bool:
    """Return whether the gradient of one of them may be asked for."""
    for x in tensors:
        if x is not None and x.requires_grad:
            return torch.is_grad_enabled()
    return False


def signature_of(arguments: Sequence[Any]) -> Hashable:
    """Return what tells calls apart: of tensors all but the numbers in them."""
    return tuple(
        [
            (x.dtype, x.device, x.shape, x.stride()) if isinstance(x, Tensor) else x
            for x in arguments
        ]
    )
