"""Whether a call is real, or only being written down by a tracer or a transform."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

_PLAIN = (Tensor, Parameter)
# Neither has a public name; both are the very flags that torch's dispatcher asks.
_modes: Any = torch._C._len_torch_dispatch_stack
_transforms: Any = torch._C._functorch.peek_interpreter_stack  # pyright: ignore[reportAttributeAccessIssue]


def traced(*tensors: Tensor) -> bool:
    """Return whether a call must go through torch's own dispatcher.

    So it is under `torch.compile`, for tensor subclasses such as fake ones, and inside of
    dispatch modes and of transforms such as `vmap`. Everything else can go straight to a
    candidate, which is some 25 us sooner.
    """
    if torch.compiler.is_compiling():
        return True
    if _modes() or _transforms() is not None:
        return True
    return not all(type(x) in _PLAIN for x in tensors)


def differentiated(x: Tensor) -> bool:
    """Return whether a derivative with respect to `x` may be asked for.

    Inside of transforms such as `torch.func.grad` the tensor cannot tell, so there it is
    always taken to be so.
    """
    if x.requires_grad:
        return torch.is_grad_enabled()
    if torch.compiler.is_compiling() or not x.is_floating_point():
        return False
    return _transforms() is not None


def transformed() -> bool:
    """Return whether this is inside of a transform such as `torch.func.grad`.

    These know the derivatives of torch's operations, not those of ours.
    """
    return not torch.compiler.is_compiling() and _transforms() is not None
