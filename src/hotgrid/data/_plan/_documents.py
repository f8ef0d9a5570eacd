"""Frozen dataclasses to plain JSON and back, with errors that name the field."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from hotgrid.errors import ArgumentError, near

Document = TypeVar("Document")


def plain(value: Any) -> Any:
    """A value as JSON: dataclasses become objects without the fields that are defaults."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if hasattr(type(value), "to_plain"):
            return value.to_plain()  # pyright: ignore[reportAttributeAccessIssue]
        return document_fields(value)
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value


def document_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that differ from their defaults, as JSON.

    Example:
        >>> from hotgrid.data import Order
        >>> document_fields(Order(seed=3))
        {'seed': 3}
    """
    found = {}
    for field in dataclasses.fields(value):
        mine = getattr(value, field.name)
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if default is dataclasses.MISSING or mine != default:
            found[field.name] = plain(mine)
    return found


def build_document(cls: type[Document], fields: Any, where: str) -> Document:
    """Return an instance of a dataclass from its JSON fields.

    Args:
        cls: The dataclass.
        fields: What `document_fields` returned.
        where: What messages begin with.

    Raises:
        ArgumentError: A field is missing, unknown or of another type; the text begins with
            `where`.

    Example:
        >>> from hotgrid.data import Order
        >>> build_document(Order, {"seed": 3}, "the order").seed
        3
    """
    if not isinstance(fields, Mapping):
        raise ArgumentError(f"{where}: {str(fields)[:60]!r} is not a JSON object")
    known = {field.name: field for field in dataclasses.fields(cls)}  # pyright: ignore
    for name in fields:
        if name not in known:
            raise ArgumentError(
                f"{where} has no setting `{name}`"
                f"{near(name, known) or '; it has ' + (', '.join(known) or 'none')}"
            )
    missing = [
        name
        for name, field in known.items()
        if name not in fields
        and field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise ArgumentError(f"{where} needs a value for {', '.join(f'`{m}`' for m in missing)}")
    hints = typing.get_type_hints(cls)
    return cls(
        **{
            name: _read(each, hints[name], f"{where}: `{name}`")
            for name, each in fields.items()
        }
    )


def check_document(value: Any, where: str) -> None:
    """Raise unless the fields of a dataclass are of their annotated types.

    Args:
        value: The dataclass; whole numbers in fields of floats become floats.
        where: What messages begin with.

    Raises:
        ArgumentError: A field is of another type; the text begins with `where`.

    Example:
        >>> from hotgrid.data import Order
        >>> check_document(Order(seed=3), "the order")
    """
    hints = typing.get_type_hints(type(value))
    for field in dataclasses.fields(value):
        mine = _read(getattr(value, field.name), hints[field.name], f"{where}: `{field.name}`")
        object.__setattr__(value, field.name, mine)


def _read(value: Any, hint: Any, where: str) -> Any:  # noqa: PLR0911 - a case for each kind
    """A JSON value as the annotated type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return _one_of(value, arguments, where)
    if origin is typing.Literal:
        if value not in arguments:
            raise ArgumentError(f"{where} is {value!r}; choose {_listed(arguments)}")
        return value
    if origin is tuple and isinstance(value, list | tuple):
        if arguments and arguments[-1] is not Ellipsis and len(arguments) != len(value):
            raise ArgumentError(f"{where} is {value!r}; expected {len(arguments)} values")
        each = [arguments[0]] * len(value) if arguments[-1] is Ellipsis else arguments
        return tuple(_read(v, h, where) for v, h in zip(value, each, strict=True))
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        if not isinstance(value, Mapping):
            raise ArgumentError(f"{where} is {value!r}; expected names and values")
        return {str(name): _read(v, arguments[1], where) for name, v in value.items()}
    if isinstance(hint, type) and hasattr(hint, "from_plain") and isinstance(value, Mapping):
        return hint.from_plain(value, where)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    # A bool is an int to Python, and almost always a mistake.
    mistaken = hint is int and isinstance(value, bool)
    if hint is Any or (isinstance(hint, type) and isinstance(value, hint) and not mistaken):
        return value
    name = getattr(hint, "__name__", str(hint))
    raise ArgumentError(f"{where} is {value!r}; expected {name}")


def _one_of(value: Any, hints: tuple[Any, ...], where: str) -> Any:
    for hint in hints:
        if hint is type(None):
            if value is None:
                return None
            continue
        try:
            return _read(value, hint, where)
        except ArgumentError:
            continue
    names = " or ".join(getattr(hint, "__name__", str(hint)) for hint in hints)
    raise ArgumentError(f"{where} is {value!r}; expected {names}")


def _listed(values: tuple[Any, ...]) -> str:
    return " or ".join(map(repr, values))
