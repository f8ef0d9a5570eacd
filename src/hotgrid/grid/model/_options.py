"""The options of a model, and creating it from text or TOML values."""

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Union

from hotgrid.errors import ArgumentError, near

from ._model import Model, Parameter

_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True)
class Option:
    """One option of a model.

    Attributes:
        name: The keyword.
        kind: The annotation of the constructor; `float` for a `Parameter`.
        default: The default; `inspect.Parameter.empty` if it is required.
        parameter: The bounds and the meaning, where the model declares them.

    Example:
        >>> from hotgrid.grid import pde
        >>> options_of(pde.Heat)["rate"].needed
        False
    """

    name: str
    kind: Any
    default: Any
    parameter: Parameter | None = None

    @property
    def needed(self) -> bool:
        """Whether it is required."""
        return self.default is inspect.Parameter.empty

    @property
    def writable(self) -> bool:
        """Whether text or a number can express it; others can only be passed from Python."""
        kinds = _alternatives(self.kind)
        return any(kind in _READERS or typing.get_origin(kind) is Literal for kind in kinds)


def options_of(model: type[Model]) -> dict[str, Option]:
    """All options of a model: arguments of its constructor, then its parameters.

    Example:
        >>> from hotgrid.grid import pde
        >>> list(options_of(pde.Heat))
        ['rate']
    """
    found: dict[str, Option] = {}
    declared: Mapping[str, Parameter] = model._parameters
    kinds = _kinds(model)
    for name, argument in inspect.signature(model).parameters.items():
        if argument.kind is argument.VAR_KEYWORD:
            found |= {
                each: Option(each, float, parameter.default, parameter)
                for each, parameter in declared.items()
                if each not in found
            }
        elif argument.kind is not argument.VAR_POSITIONAL:
            silent = argument.default in (None, argument.empty)
            kind = kinds.get(name, str if silent else type(argument.default))
            found[name] = Option(name, kind, argument.default, declared.get(name))
    return found


def build_model(model: type[Model], values: Mapping[str, object]) -> Model:
    """Make a model, with values as text (which is converted) or as Python values.

    Example:
        >>> from hotgrid.grid import pde
        >>> build_model(pde.Heat, {"rate": "0.1"}).rate
        0.1

    Raises:
        ArgumentError: The model has no such option, or a value does not fit it.
    """
    if not isinstance(values, Mapping):
        raise ArgumentError(f"`values` must be a dict from options to values, got {values!r}")
    options = options_of(model)
    title = model.__name__
    for name in values:
        if name not in options:
            raise ArgumentError(
                f"{title} has no option `{name}`{near(name, options)} "
                f"(it has {', '.join(options) or 'none'})"
            )
    for name, option in options.items():
        if option.needed and name not in values:
            raise ArgumentError(f"{title} needs `{name}`: {_expected(option)}")
    return model(**{name: _converted(options[name], value) for name, value in values.items()})


def _kinds(model: type[Model]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(model.__init__)
    except (NameError, TypeError):  # names that exist for type checkers only
        return {}


def _converted(option: Option, value: object) -> Any:
    if isinstance(value, list):
        value = tuple(value)
    for kind in _alternatives(option.kind):
        try:
            return _read(kind, value.strip() if isinstance(value, str) else value)
        except ValueError:
            continue
    hint = ""
    if option.parameter is not None and "@" in str(value):
        hint = f"; the value at the start comes first: `{option.default} -> {value}`"
    raise ArgumentError(f"`{option.name}` must be {_expected(option)}, got {value!r}{hint}")


def _alternatives(kind: Any) -> list[Any]:
    """The kinds of a union, the strictest first: nearly every text is a `str`."""
    union = typing.get_origin(kind) in (Union, types.UnionType)
    kinds = list(typing.get_args(kind)) if union else [kind]
    order = list(_READERS)
    return sorted(kinds, key=lambda k: order.index(k) if k in order else -1)


def _read(kind: Any, value: object) -> object:
    """The value as one of a kind, or `ValueError`."""
    if typing.get_origin(kind) is Literal:
        return _one_of({str(word): word for word in typing.get_args(kind)}, value)
    if kind in _READERS:
        return _READERS[kind][1](value)
    if isinstance(value, str):
        raise ValueError
    return value


def _one_of(words: Mapping[str, object], value: object) -> object:
    if str(value) in words:
        return words[str(value)]
    raise ValueError


def _number(kind: type[int] | type[float]) -> Callable[[object], object]:
    def read(value: object) -> object:
        # In Python True is a number, and int(2.5) is 2.
        if isinstance(value, str) or type(value) in (int, kind):
            return kind(value)  # pyright: ignore[reportArgumentType]
        raise ValueError

    return read


def _text(value: object) -> object:
    if isinstance(value, str):
        return value
    raise ValueError


def _expected(option: Option) -> str:
    """A value as text."""
    words: list[str] = []
    for kind in _alternatives(option.kind):
        if typing.get_origin(kind) is Literal:
            words += [f"`{word}`" for word in typing.get_args(kind)]
        elif kind in _READERS:
            words.append(_READERS[kind][0])
    return (
        " or ".join(words) if option.writable else f"{option.kind}, which only Python can give"
    )


# The strictest first.
_READERS: dict[Any, tuple[str, Callable[[object], object]]] = {
    types.NoneType: ("none", lambda value: _one_of({"none": None}, value)),
    bool: ("true or false", lambda value: _one_of(_TRUTH, str(value).lower())),
    int: ("a whole number", _number(int)),
    float: ("a number", _number(float)),
    str: ("a text", _text),
}
