"""Operators in torch's library, with little overhead for calls without gradients."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from hotgrid.tensors._torch_private import autograd_kernel

from ._modes import plain, resolving

# Alive as long as the operators are.
_LIBRARY = torch.library.Library("hotgrid", "FRAGMENT")


def operator_of(
    name: str,
    schema: str,
    compute: Callable[..., Any],
    *,
    check: Callable[..., object],
    fake: Callable[..., Any],
    differentiate: Callable[..., Any],
    remember: Callable[..., None],
    vectorised: Callable[..., Any],
) -> Any:
    """Make `torch.ops.hotgrid.<name>`, with gradients, shapes and vmap.

    Args:
        name: As in `torch.ops.hotgrid.<name>`.
        schema: Its arguments and results, in torch's language.
        compute: Computes it; makes its own checks.
        check: Raises where types, shapes or devices do not fit, of what has no numbers too.
        fake: Makes results of the right shapes with nothing in them, of what was checked.
        differentiate: The `backward` of `torch.library.register_autograd`.
        remember: The `setup_context` for it.
        vectorised: As for `torch.library.register_vmap`.

    Returns:
        The operator.
    """
    known = f"hotgrid::{name}"
    torch.library.define(known, schema)
    torch.library.impl(known, "default", resolving(compute))
    torch.library.register_fake(known, _after(check, fake))
    torch.library.register_vmap(known, vectorised)
    made = getattr(torch.ops.hotgrid, name).default
    try:
        # As `register_autograd`, but only for calls with a gradient: its formula goes through
        # the dispatcher a second time.
        formula = autograd_kernel(made, differentiate, remember)
    except (ImportError, TypeError):
        torch.library.register_autograd(known, differentiate, setup_context=remember)
    else:
        _LIBRARY.impl(name, _straight(compute, formula), "Autograd", with_keyset=True)
    return made


def _after(check: Callable[..., object], fake: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        check(*arguments)
        return fake(*arguments)

    return call


def _straight(compute: Callable[..., Any], formula: Callable[..., Any]) -> Callable[..., Any]:
    def call(keys: Any, *arguments: Any) -> Any:
        if plain(*[x for x in arguments if isinstance(x, Tensor)]):
            return compute(*arguments)
        return formula(keys, *arguments)

    return call
