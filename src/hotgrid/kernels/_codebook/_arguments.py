"""Checks of the parts of a coded matrix: kernels do not check them."""

from typing import Any

from torch import Tensor

from hotgrid.errors import ArgumentError, near

from ._coded import Coded
from ._learn._fit import FORMS


def expect_form(form: object) -> None:
    """Check the name of a form.

    Raises:
        ArgumentError: There is no such form.
    """
    if form not in FORMS:
        raise ArgumentError(
            f"`form` {form!r} must be one of {', '.join(FORMS)}{near(form, FORMS)}"
        )


def checked_parts(form: str, x: Tensor, *parts: Tensor | None) -> Coded:
    """Return the coded matrix that `x` `[count, cols]` is to be multiplied with.

    Only types, shapes and devices are checked.

    Raises:
        ArgumentError: A part does not match the form, `x`, or the other parts.
    """
    expect_form(form)
    if x.ndim != 2 or not x.is_floating_point():
        raise ArgumentError(
            f"`x` must be `[count, cols]` of a floating type, got {x.dtype} {tuple(x.shape)}"
        )
    given: tuple[Any, ...] = parts
    if given[0] is None or given[1] is None:
        raise ArgumentError("every form has `codes` and a `scale`, and one of them is None")
    coded = Coded(form, x.shape[1], *given)
    fault = coded.misfit() or _elsewhere(coded, x)
    if fault is not None:
        raise ArgumentError(f"{fault}, with `x` of shape {tuple(x.shape)} on {x.device}")
    return coded


def _elsewhere(coded: Coded, x: Tensor) -> str | None:
    for name, part in coded.parts:
        if part is not None and part.device != x.device:
            return f"`{name}` is on {part.device}"
    return None
