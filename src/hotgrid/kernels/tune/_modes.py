"""The context of a call: compilers, tracers, transforms, modes, autocast and gradients."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from hotgrid.tensors._torch_private import (
    DisableTorchFunction,
    DispatchKey,
    DispatchKeySet,
    ForceDispatchKeys,
    any_autocast,
    count_dispatch_modes,
    current_transform,
    excluded_keys,
    in_forward_mode,
    included_keys,
    is_key_excluded,
    is_zero_tensor,
    jit_tracing_state,
    without_dispatch_modes,
)

_PLAIN = (Tensor, Parameter)


def traced(*tensors: Tensor) -> bool:
    """Return whether a call must go through torch's own dispatcher.

    That is the case under `torch.compile` and `torch.jit.trace`, inside dispatch modes and
    of transforms such as `vmap`, and for tensor subclasses, meta tensors, zero tensors and
    lazily negated views. Any other call can go straight to a candidate, which saves 25 us.
    """
    if torch.compiler.is_compiling() or count_dispatch_modes():
        return True
    if current_transform() is not None or jit_tracing_state() is not None:
        return True
    for x in tensors:
        if type(x) not in _PLAIN or x.is_neg() or x.is_meta or is_zero_tensor(x):
            return True
    return False


def plain(*tensors: Tensor, gradients: bool = False) -> bool:
    """Return whether a call needs nothing of torch: no tracer, mode, transform or autocast.

    Nor gradients, unless they are allowed.
    """
    if traced(*tensors) or in_forward_mode() or any_autocast():
        return False
    wanted = torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
    return gradients or not wanted


def plain_sizes(sizes: Iterable[int]) -> tuple[int, ...]:
    """Return sizes as numbers: under `torch.jit.trace` they are tensors."""
    if torch.compiler.is_compiling() or jit_tracing_state() is None:
        return tuple(sizes)
    return tuple(map(int, sizes))


def differentiated(x: Tensor) -> bool:
    """Return whether a derivative with respect to `x` may be requested.

    Transforms such as `torch.func.grad` and forward mode do not show in the tensor, so inside
    of them the answer is always yes.
    """
    if x.requires_grad and torch.is_grad_enabled():
        return True
    if torch.compiler.is_compiling() or not x.is_floating_point():
        return False
    return transformed()


def transformed() -> bool:
    """Return whether this is inside a transform such as `torch.func.grad`, or forward mode.

    These know the derivatives of torch's operations, not those of ours.
    """
    if torch.compiler.is_compiling():
        return False
    return current_transform() is not None or in_forward_mode()


def autocast_type(x: Tensor) -> torch.dtype | None:
    """Return the type in which autocast computes products of `x`; None if it leaves them."""
    if not torch.compiler.is_compiling() and not any_autocast():
        return None
    kind = x.device.type
    if kind == "meta" or x.dtype == torch.float64 or not torch.is_autocast_enabled(kind):
        return None
    return torch.get_autocast_dtype(kind)


# An operator called inside a dispatch mode computes below the keys with which torch resolves
# lazy views (conjugated, negated, zeros): their memory would be read as it is.
_LAZY: Any = DispatchKeySet(DispatchKey.Conjugate)
for _key in (DispatchKey.Negative, DispatchKey.ZeroTensor):
    _LAZY = _LAZY.add(_key)


def _lazy_views_resolved() -> AbstractContextManager[Any]:
    """Let torch resolve lazy views again where a dispatch mode has excluded that."""
    if not is_key_excluded(DispatchKey.Conjugate):
        return nullcontext()
    return ForceDispatchKeys(included_keys(), excluded_keys() - _LAZY)


def resolving(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes the same inside dispatch modes as elsewhere."""

    @wraps(compute)
    def call(*arguments: Any) -> Any:
        with _lazy_views_resolved():
            return compute(*arguments)

    return call


@contextmanager
def outside_of_modes() -> Iterator[None]:
    """Leave every dispatch and function mode of this thread for a while."""
    with ExitStack() as left:
        if count_dispatch_modes():
            left.enter_context(without_dispatch_modes())
        left.enter_context(DisableTorchFunction())
        left.enter_context(_lazy_views_resolved())
        yield
