"""`Parameter`: a number of a model, with its bounds."""

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Any, NoReturn, Self, overload

from hotgrid.errors import ArgumentError


class HasParameters:
    """Base of what declares parameters: on its instances they are numbers."""

    # Not in `__dict__` under their own names: tracing such a lookup calls `__get__` again,
    # without end on torch 2.11.
    _values: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True)
class Parameter:
    """A number of a model that can be set, with its bounds.

    Written as a class attribute; on an instance the attribute is the number, a float. It
    is set when the model is made, and stays: a run and what it saves are of one model.

    Attributes:
        default: The value when none is given.
        meaning: One line on what it does.
        low: The smallest value allowed.
        high: The largest value allowed.
        unit: What it is measured in.
        above: The value must be larger than this.
        name: The attribute it is written to; the model sets it.

    Example:
        >>> Parameter(0.2, "flow per step", low=0, high=0.25).default
        0.2

    Raises:
        ArgumentError: A model that has been made is given another value.
    """

    default: float
    meaning: str = ""
    low: float = -math.inf
    high: float = math.inf
    unit: str = ""
    above: float = -math.inf
    name: str = ""

    @overload
    def __get__(self, model: "HasParameters", kind: type[Any] | None = None) -> float: ...
    @overload
    def __get__(self, model: object, kind: type[Any] | None = None) -> Self: ...
    def __get__(self, model: Any, kind: type[Any] | None = None) -> Self | float:
        if model is None or not self.name:
            return self
        if self.name not in model._values:
            raise ArgumentError(
                f"`{type(model).__name__}` has no `{self.name}` yet: its `__init__` must call "
                "`super().__init__(**parameters)` first"
            )
        return model._values[self.name]

    def __set__(self, model: Any, value: object) -> NoReturn:
        kind = type(model).__name__
        raise ArgumentError(
            f"`{self.name}` of {kind} is {self.__get__(model)!r} and cannot change: "
            f"simulations that run it would not notice {value!r}. Make another model, "
            f"`{kind}({self.name}={value!r})`; with `state=simulation.state` a new "
            "simulation continues from an old one"
        )

    def checked(self, name: str, value: object) -> float:
        """Return the value as a float, or raise `ArgumentError`."""
        if isinstance(value, bool) or not isinstance(value, Real):
            raise ArgumentError(f"`{name}` must be a number, got {value!r}")
        value = float(value)
        if not (self.low <= value <= self.high and value > self.above):
            bounds = f"from {self.low:g} to {self.high:g}"
            if self.high == math.inf:
                bounds = f"at least {self.low:g}"
            if self.above > -math.inf:
                bounds = f"above {self.above:g}" + (
                    f" and at most {self.high:g}" if self.high < math.inf else ""
                )
            meaning = f" ({self.meaning})" if self.meaning else ""
            raise ArgumentError(f"`{name}` must be {bounds}, got {value:g}{meaning}")
        return value


@contextlib.contextmanager
def parameters_read(model: HasParameters) -> Iterator[set[str]]:
    """Collect the names of the parameters that are read from a model meanwhile."""
    before = model._values
    model._values = watched = _Watched(before)
    try:
        yield watched.read
    finally:
        model._values = before


class _Watched(dict[str, float]):
    def __init__(self, values: Mapping[str, float]) -> None:
        super().__init__(values)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> float:
        self.read.add(name)
        return super().__getitem__(name)
