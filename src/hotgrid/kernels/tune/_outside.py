"""Work that must see torch as it is by itself, whatever the caller has around it.

An operator that is called inside of a dispatch mode computes below the keys with which torch
resolves what is still to be conjugated, negated or filled with zeros: such views would be
read as they lie in memory. And a mode would watch, and might change, what a trial does.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import wraps
from typing import Any

import torch

from ._plain import any_mode

# None has a public name; torch itself does so where it computes below a mode.
_C: Any = torch._C
_left_out: Any = _C._dispatch_tls_is_dispatch_key_excluded
_CONJUGATE: Any = _C.DispatchKey.Conjugate
_LAZY: Any = _C.DispatchKeySet(_CONJUGATE)
for _key in (_C.DispatchKey.Negative, _C.DispatchKey.ZeroTensor):
    _LAZY = _LAZY.add(_key)


def _lazy_views_resolved() -> AbstractContextManager[Any]:
    """Let torch resolve views again where a mode has left that behind."""
    if not _left_out(_CONJUGATE):
        return nullcontext()
    included, excluded = (
        _C._dispatch_tls_local_include_set(),
        _C._dispatch_tls_local_exclude_set(),
    )
    return _C._ForceDispatchKeyGuard(included, excluded - _LAZY)


def resolving(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes the same inside of modes as outside."""

    @wraps(compute)
    def call(*arguments: Any) -> Any:
        if not _left_out(_CONJUGATE):
            return compute(*arguments)
        with _lazy_views_resolved():
            return compute(*arguments)

    return call


@contextmanager
def outside_of_modes() -> Iterator[None]:
    """Leave every mode of this thread for a while."""
    with ExitStack() as left:
        if any_mode():
            from torch.utils._python_dispatch import _disable_current_modes

            left.enter_context(_disable_current_modes())
        left.enter_context(_C.DisableTorchFunction())
        left.enter_context(_lazy_views_resolved())
        yield
