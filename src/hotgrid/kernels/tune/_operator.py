"""Operators in torch's library that cost little where nobody needs what torch does for them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ._outside import resolving
from ._plain import plain

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
    quick: Callable[..., Any] | None = None,
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
        quick: Computes it with gradients where that is possible at once, or returns None.

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
        # What `register_autograd` does, which we need only for calls with a gradient: its
        # formula is Python and goes through the dispatcher once more, also without one.
        from torch._library.autograd import Info, make_autograd_impl

        formula = make_autograd_impl(made, Info(differentiate, remember))
    except (ImportError, TypeError):
        torch.library.register_autograd(known, differentiate, setup_context=remember)
    else:
        straight = _straight(compute, quick, formula)
        _LIBRARY.impl(name, straight, "Autograd", with_keyset=True)
    return made


def _after(check: Callable[..., object], fake: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        check(*arguments)
        return fake(*arguments)

    return call


def _straight(
    compute: Callable[..., Any], quick: Callable[..., Any] | None, formula: Callable[..., Any]
) -> Callable[..., Any]:
    def call(keys: Any, *arguments: Any) -> Any:
        found = None if quick is None else quick(*arguments)
        if found is not None:
            return found
        tensors = [x for x in arguments if isinstance(x, Tensor)]
        if plain(*tensors) and not tensors[0].is_meta:
            return compute(*arguments)
        return formula(keys, *arguments)

    return call
