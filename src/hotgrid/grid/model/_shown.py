"""Views and observables: methods that are pictures, and numbers to watch."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeVar, get_args, overload

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, near

F = TypeVar("F", bound=Callable[..., Any])


def view(method: F) -> F:
    """Mark a method of a model as a picture: state in, `[*space]` out.

    Example:
        >>> @view
        ... def speed(self, state): ...
    """
    method._grid_role = "view"  # pyright: ignore[reportFunctionMemberAccess]
    return method


Over = Literal["sum", "mean", "max"]
"""How the value for the whole grid follows from those of its parts."""


@overload
def observable(method: F) -> F: ...
@overload
def observable(*, over: Over) -> Callable[[F], F]: ...


def observable(method: Any = None, *, over: Over | None = None) -> Any:
    """Mark a method of a model as a number to watch: state in, 0-d tensor out.

    Sum with `total`, which adds in double precision on the device.

    Arguments:
        method: The method.
        over: How the whole number follows from those of parts of the grid, each from its own
            cells alone: their sum, their mean by cells, or the largest. On a mesh the ranks
            then exchange numbers; without it they gather the whole state first.

    Example:
        >>> @observable(over="sum")
        ... def heat(self, state): ...

    Raises:
        ArgumentError: `over` is none of these.
    """
    if over is not None and over not in get_args(Over):
        raise ArgumentError(
            f"`over` of an observable must be one of {', '.join(get_args(Over))}, or left out "
            f"to have the whole state gathered, got {over!r}{near(over, get_args(Over))}"
        )
    if method is None:
        return partial(_observable, over=over)
    return _observable(method, over)


def _observable(method: F, over: Over | None) -> F:
    method._grid_role = "observable"  # pyright: ignore[reportFunctionMemberAccess]
    method._grid_over = over  # pyright: ignore[reportFunctionMemberAccess]
    return method


# Numbers that are summed at once: to sum in double precision torch copies them into it.
_AT_ONCE = 1 << 22


def total(x: Tensor) -> Tensor:
    """The sum of a tensor in double precision, on its device, as a 0-d tensor.

    Example:
        >>> total(torch.ones(3, 3))
        tensor(9., dtype=torch.float64)
    """
    if x.numel() <= _AT_ONCE:
        return x.sum(dtype=torch.float64)
    x = x.squeeze()
    parts = x.split(max(1, _AT_ONCE * len(x) // x.numel()))
    return torch.stack([total(part) for part in parts]).sum()
