"""Whether a call is real, or only being written down by a tracer or a transform."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import Parameter

_PLAIN = (Tensor, Parameter)
# None has a public name; all are the very flags that torch's dispatcher asks.
_modes: Any = torch._C._len_torch_dispatch_stack
_transforms: Any = torch._C._functorch.peek_interpreter_stack  # pyright: ignore[reportAttributeAccessIssue]
_recording: Any = torch._C._get_tracing_state
_autocast: Any = torch._C._is_any_autocast_enabled


def traced(*tensors: Tensor) -> bool:
    """Return whether a call must go through torch's own dispatcher.

    So it is under `torch.compile` and `torch.jit.trace`, for tensor subclasses such as fake
    ones, for those without data, without memory for their zeros or whose sign is still to be
    turned, and inside of dispatch modes and of transforms such as `vmap`. Everything else can
    go straight to a candidate, which is some 25 us sooner.
    """
    if torch.compiler.is_compiling():
        return True
    if _modes() or _transforms() is not None or _recording() is not None:
        return True
    for x in tensors:
        if type(x) not in _PLAIN or x.is_neg() or x.is_meta or x._is_zerotensor():
            return True
    return False


def plain_sizes(sizes: Iterable[int]) -> tuple[int, ...]:
    """Return sizes as numbers: while `torch.jit.trace` records, they are tensors."""
    if torch.compiler.is_compiling() or _recording() is None:
        return tuple(sizes)
    return tuple(map(int, sizes))


def differentiated(x: Tensor) -> bool:
    """Return whether a derivative with respect to `x` may be asked for.

    Inside of transforms such as `torch.func.grad` and of forward mode the tensor cannot
    tell, so there it is always taken to be so.
    """
    if x.requires_grad and torch.is_grad_enabled():
        return True
    if torch.compiler.is_compiling() or not x.is_floating_point():
        return False
    return transformed()


def transformed() -> bool:
    """Return whether this is inside of a transform such as `torch.func.grad`, or forward mode.

    These know the derivatives of torch's operations, not those of ours.
    """
    if torch.compiler.is_compiling():
        return False
    return _transforms() is not None or forward_ad._current_level >= 0


def autocast_type(x: Tensor) -> torch.dtype | None:
    """Return the type in which autocast wants products of `x`; None where it does not care."""
    if not torch.compiler.is_compiling() and not _autocast():
        return None
    kind = x.device.type
    if kind == "meta" or x.dtype == torch.float64 or not torch.is_autocast_enabled(kind):
        return None
    return torch.get_autocast_dtype(kind)
