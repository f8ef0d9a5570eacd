"""Options that are fields of a case: declared once, in `hotgrid.config.Case`."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

from cyclopts import CycloptsError, Parameter

from hotgrid.config import Case, Dtype, case_of

from ._whole_number import WholeNumber

_Command = TypeVar("_Command", bound=Callable[..., Any])
# The types of options for fields that are not text, by the type of the field.
_AS_TYPED: dict[Any, Any] = {
    int | None: WholeNumber,
    int: WholeNumber,
    float | None: float | None,
    Path | None: Path | None,
    bool | None: bool | None,
    Dtype: Dtype | None,
    Dtype | None: Dtype | None,
}


def case_options(*names: str, **meanings: str) -> Callable[[_Command], _Command]:
    """Give a command fields of `Case` after its first argument, in place of `**options`.

    Args:
        names: The fields; without any, all but the model.
        meanings: Fields whose line of `--help` differs from the one in `Case`.
    """
    wanted = {*names, *meanings} or {each.name for each in fields(Case)} - {"model"}

    def decorated(command: _Command) -> _Command:
        own = [*inspect.signature(command).parameters.values()][:-1]
        shared = [
            _parameter(each.name, meanings.get(each.name) or each.metadata["meaning"])
            for each in fields(Case)
            if each.name in wanted
        ]
        command.__signature__ = inspect.Signature([own[0], *shared, *own[1:]])
        return command

    return decorated


def case_from(model: str, options: Mapping[str, Any]) -> Case:
    """The case of a command line."""
    return case_of(model, {**options, "set": _pairs(options.get("set", ())) or None})


def _parameter(name: str, meaning: str) -> inspect.Parameter:
    kind: Any = _AS_TYPED.get(get_type_hints(Case)[name], str | None)
    named, default = Parameter(help=meaning), None
    if name == "set":
        kind, default = tuple[str, ...], ()
        named = Parameter(name="--set", metavar="NAME=VALUE", help=meaning)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, named]
    )


def _pairs(texts: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name.strip() and equals):
            raise CycloptsError(
                msg=f"`--set {text}` must be NAME=VALUE, such as `--set rate=0.1`; "
                "`hotgrid models` lists the names."
            )
        found[name.strip()] = value.strip()
    return found
