"""Operators: what makes columns from columns, with its settings as data."""

import dataclasses
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar, cast

from hotgrid.errors import ArgumentError

from ._documents import check_document, document_fields
from ._registry import Registry
from ._types import ColumnType

Decorated = TypeVar("Decorated")


class Operator(ABC):
    """Base of operators: a frozen dataclass whose fields are its settings.

    A subclass has `inputs`, says which `outputs` it makes of them, and computes one sample
    in `run`. It is registered with `@operator`.

    Attributes:
        name: Its name in plans.
        inputs: Its parameters and the types that they take.
        random: Whether `run` takes `draws=`, the random numbers of the sample.
        fills: Whether `run` takes `out=`, an array for its only output, or None. It writes
            there if it can and returns what it wrote to.
    """

    name: ClassVar[str] = ""
    inputs: ClassVar[Mapping[str, str]] = {}
    random: ClassVar[bool] = False
    fills: ClassVar[bool] = False

    @abstractmethod
    def outputs(self, types: Mapping[str, ColumnType]) -> dict[str, ColumnType]:
        """Return the names and types of its outputs, given the types of its inputs.

        Raises:
            ArgumentError: It cannot work with these types and settings.
        """

    @abstractmethod
    def run(self, *values: Any, **more: Any) -> Any:
        """Compute one sample: the outputs as a tuple, or the only output as it is."""

    @property
    def config(self) -> dict[str, Any]:
        """The settings that are not defaults, as JSON."""
        return document_fields(self)


OPERATORS: Registry[Operator] = Registry("an operator", "hotgrid.operators")


def operator(
    name: str,
    *,
    inputs: Mapping[str, str] | None = None,
    outputs: Mapping[str, str] | None = None,
) -> Callable[[Decorated], Decorated]:
    """Register an operator under a name, as a decorator.

    It takes a frozen dataclass derived from `Operator`, or a function. Positional parameters
    of a function are its inputs; keyword parameters are settings, with a default if they may
    be left out. A function that has a keyword parameter `draws` gets the random numbers of
    the sample.

    Other packages name theirs as entry points in the group `hotgrid.operators`.

    Args:
        name: Its name in plans.
        inputs: For a function, the type of every input.
        outputs: For a function, the names and types of what it returns, in order.

    Raises:
        ArgumentError: The name is taken, or the types do not belong to the parameters.

    Example:
        >>> @operator("shout", inputs={"text": "text"}, outputs={"loud": "text"})
        ... def shout(text: str, *, mark: str = "!") -> str:
        ...     return text.upper() + mark
        >>> operators()["shout"](mark="?").run("hello")
        'HELLO?'
    """

    def register(found: Decorated) -> Decorated:
        if isinstance(found, type):
            cls = cast("type[Operator]", found)
            if not (issubclass(cls, Operator) and dataclasses.is_dataclass(cls)):
                raise ArgumentError(
                    f"`{found.__name__}` is not a dataclass derived from Operator, which "
                    "`@operator` registers"
                )
        else:
            cls = _of_function(cast("Callable[..., Any]", found), inputs or {}, outputs or {})
        cls.name = name
        OPERATORS.add(name, cls)
        return found

    return register


def operators() -> dict[str, type[Operator]]:
    """Return every operator by name, including those of other packages."""
    return {name: OPERATORS.get(name) for name in OPERATORS.names()}


def settings_checked(made: Operator) -> Operator:
    """The operator, with its settings checked against their annotations."""
    check_document(made, f"operator `{made.name}`")
    return made


def _of_function(
    function: Callable[..., Any], inputs: Mapping[str, str], outputs: Mapping[str, str]
) -> type[Operator]:
    parameters = inspect.signature(function).parameters.values()
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    named = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "draws"]
    takes = {name: str(ColumnType.of(each)) for name, each in inputs.items()}
    makes = {name: ColumnType.of(each) for name, each in outputs.items()}
    if [*takes] != positional or not makes:
        raise ArgumentError(
            f"`{function.__name__}` takes {positional}, and `inputs` names {[*takes]}; give "
            "the type of each in order, and of at least one of `outputs`"
        )
    random = any(p.name == "draws" for p in parameters)

    def run(self: Operator, *values: Any, **more: Any) -> Any:
        settings = {p.name: getattr(self, p.name) for p in named}
        return function(*values, **settings, **more)

    fields = [
        (p.name, Any if p.annotation is p.empty else p.annotation)
        if p.default is p.empty
        else (p.name, Any if p.annotation is p.empty else p.annotation, p.default)
        for p in named
    ]
    space: dict[str, Any] = {
        "inputs": takes,
        "random": random,
        "outputs": lambda self, types: dict(makes),
        "run": run,
        "__doc__": function.__doc__,
        "__module__": function.__module__,
    }
    return dataclasses.make_dataclass(
        function.__name__, fields, bases=(Operator,), namespace=space, frozen=True
    )
