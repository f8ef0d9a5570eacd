"""A state with a cache, so that views and observables share what they compute."""

from collections.abc import Callable
from functools import wraps
from numbers import Real
from typing import Any, TypeVar

from torch import Tensor

from hotgrid.errors import ArgumentError

from ._model import State

Part = TypeVar("Part")


class SeenState(dict[str, Tensor]):
    """A state with a cache for what was computed from it.

    It exists for one observation, during which nothing changes it.
    """

    def __init__(self, fields: State) -> None:
        super().__init__(fields)
        self.parts: dict[str, Any] = {}


def once(method: Callable[[Any, State], Part]) -> Callable[[Any, State], Part]:
    """Compute a part of several views or observables once per observation.

    For a method of a model that takes a state and is pure. Outside of an observation it is
    computed each time.
    """

    @wraps(method)
    def found(model: Any, state: State) -> Part:
        if not isinstance(state, SeenState):
            return method(model, state)
        name = method.__qualname__
        if name not in state.parts:
            state.parts[name] = method(model, state)
        return state.parts[name]

    return found


def observed(model: object, name: str, value: object) -> Any:
    """What an observable gave, as a number."""
    if isinstance(value, Tensor) and value.numel() == 1:
        return value.item()
    if isinstance(value, Real):
        return value
    what = f"the shape {tuple(value.shape)}" if isinstance(value, Tensor) else repr(value)
    raise ArgumentError(
        f"the observable `{name}` of {type(model).__name__} must be one number, got {what}; "
        "`total` adds up a field"
    )


def pictured(model: object, name: str, value: object) -> Tensor:
    """What a view gave, on the CPU."""
    if isinstance(value, Tensor):
        return value.cpu()
    raise ArgumentError(
        f"the view `{name}` of {type(model).__name__} must be a tensor, got {value!r}"
    )
