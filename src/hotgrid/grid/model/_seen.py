"""A state with a cache, so that views and observables share what they compute."""

from collections.abc import Callable
from functools import partial, wraps
from numbers import Real
from typing import Any, TypeVar, overload

from torch import Tensor

from hotgrid.errors import ArgumentError

from ._model import State

Part = TypeVar("Part")


class SeenState(dict[str, Tensor]):
    """A state with a cache of results computed from it.

    It lives for one observation, during which the state does not change.

    Arguments:
        fields: The state.
        wider: Where it is a part of a grid: calls a method of a model with this many cells more
            at every side, and returns what it gave for the part.
    """

    def __init__(
        self,
        fields: State,
        wider: Callable[[Callable[[Any, State], Any], int], Any] | None = None,
    ) -> None:
        super().__init__(fields)
        self.wider = wider
        self.parts: dict[str, Any] = {}


Method = Callable[[Any, State], Part]


@overload
def once(method: Method[Part]) -> Method[Part]: ...
@overload
def once(*, reach: int) -> Callable[[Method[Part]], Method[Part]]: ...


def once(method: Any = None, *, reach: int = 0) -> Any:
    """Compute a part of several views or observables once per observation.

    For a pure method of a model that takes a state. Outside an observation it is
    computed each time.

    Arguments:
        method: The method.
        reach: How many cells around a cell its numbers depend on, where it gives a tensor
            `[..., *space]` or a list of them. Then observables over parts of a grid can use it.
    """
    if method is None:
        return partial(_once, reach=reach)
    return _once(method, reach)


def _once(method: Method[Part], reach: int) -> Method[Part]:
    @wraps(method)
    def found(model: Any, state: State) -> Part:
        if not isinstance(state, SeenState):
            return method(model, state)
        name = method.__qualname__
        if name not in state.parts:
            wider = state.wider if reach else None
            state.parts[name] = wider(method, reach) if wider else method(model, state)
        return state.parts[name]

    return found


def observed(model: object, name: str, value: object) -> Any:
    """The result of an observable, as a number."""
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
    """The result of a view, on the CPU."""
    if isinstance(value, Tensor):
        return value.cpu()
    raise ArgumentError(
        f"the view `{name}` of {type(model).__name__} must be a tensor, got {value!r}"
    )
