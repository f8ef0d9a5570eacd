"""Ops as operators in torch's library, with little overhead for calls without gradients."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from hotgrid.tensors._torch_private import autograd_kernel

from ._dispatch import Tuned
from ._modes import plain, resolving

# Alive as long as the operators are.
_LIBRARY = torch.library.Library("hotgrid", "FRAGMENT")
_SETTINGS = frozenset((bool, int, list, str, type(None)))  # what else operators take


def operator_of(
    tuned: Tuned,
    schema: str,
    compute: Callable[..., Any],
    *,
    check: Callable[..., Sequence[Any]],
    fake: Callable[..., Any],
    differentiate: Callable[..., Any],
    remember: Callable[..., None],
    vectorised: Callable[..., Any],
) -> Any:
    """Make `torch.ops.hotgrid.<name of the op>`, with gradients, shapes and vmap.

    Args:
        tuned: The op.
        schema: Its arguments and results, as `torch.library.define` takes them.
        compute: Computes it for checked arguments, through `tuned`.
        check: Returns the arguments as candidates take them, or raises; also for tensors
            without data. Direct `torch.ops` calls skip the checks of the public function.
        fake: Makes empty results of the right shapes for checked arguments.
        differentiate: The `backward` of `torch.library.register_autograd`.
        remember: The `setup_context` for it.
        vectorised: As for `torch.library.register_vmap`.

    Returns:
        The operator.
    """
    name = tuned.op.name
    known = f"hotgrid::{name}"

    torch.library.define(known, schema)
    torch.library.impl(known, "default", resolving(lambda *given: compute(*check(*given))))
    torch.library.register_fake(known, lambda *given: fake(*check(*given)))
    torch.library.register_vmap(known, vectorised)
    made = getattr(torch.ops.hotgrid, name).default
    try:
        # As `register_autograd`, but only for calls with a gradient: its formula goes through
        # the dispatcher a second time.
        formula = autograd_kernel(made, differentiate, remember)
    except (ImportError, TypeError):
        torch.library.register_autograd(known, differentiate, setup_context=remember)
    else:
        straight = _straight(tuned, compute, check, formula)
        _LIBRARY.impl(name, straight, "Autograd", with_keyset=True)
    return made


def _straight(
    tuned: Tuned,
    compute: Callable[..., Any],
    check: Callable[..., Sequence[Any]],
    formula: Callable[..., Any],
) -> Callable[..., Any]:
    """Return a function that computes at once without gradients, else by the formula."""

    def call(keys: Any, *arguments: Any) -> Any:
        tensors, settings = [], []
        for x in arguments:
            is_setting = type(x) in _SETTINGS  # three times as fast as isinstance
            settings.append(x if is_setting else None)
            if not is_setting:
                tensors.append(x)
        name = tuple(settings)
        run = tuned.fast(name, *tensors)
        if run is not None:
            return run(*tensors)
        if not plain(*tensors):
            return formula(keys, *arguments)
        given = check(*arguments)
        found = compute(*given)
        tuned.keep_fast(name, tuple(tensors), given, _with_other_tensors(given))
        return found

    return call


def _with_other_tensors(given: Sequence[Any]) -> Callable[..., Any]:
    """Return a function that calls another with new tensors and these settings."""
    settings = [None if isinstance(x, Tensor) else x for x in given]
    slots = [n for n, x in enumerate(given) if isinstance(x, Tensor)]

    def compute(function: Callable[..., Any], *tensors: Tensor) -> Any:
        arguments = settings.copy()
        for n, x in zip(slots, tensors, strict=True):
            arguments[n] = x
        return function(*arguments)

    return compute
