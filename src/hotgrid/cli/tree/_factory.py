"""From `package.module:factory` to a module, without memory where that is possible."""

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hotgrid.cli._member import member
from hotgrid.errors import ArgumentError

if TYPE_CHECKING:
    from torch import nn


def built(model: str, settings: Sequence[str]) -> "nn.Module":
    """Call the factory that a text names and return its module.

    It is called under the meta device first, which takes no memory, and on the CPU if that
    fails.

    Raises:
        ArgumentError: There is no such factory, it fails, or it returns something else.
    """
    import torch
    from torch import nn

    place, colon, name = model.rpartition(":")
    if not (place and colon and name):
        raise ArgumentError(
            f"`{model}` must be `package.module:factory` or `file.py:factory`, such as "
            "`torch.nn:Transformer`"
        )
    factory = member(place, name)
    options = dict(map(_option, settings))
    if isinstance(factory, nn.Module):
        return factory
    if not callable(factory):
        raise ArgumentError(f"`{name}` in `{place}` is not a module, a class or a function")
    try:
        with torch.device("meta"):
            made = factory(**options)
    except Exception:  # noqa: BLE001  whatever it is, the second try reports it
        made = _made_on_cpu(model, factory, options)
    if not isinstance(made, nn.Module):
        raise ArgumentError(
            f"`{model}` returned {type(made).__name__}, and a torch.nn.Module is needed"
        )
    return made


def _made_on_cpu(model: str, factory: Any, options: dict[str, Any]) -> Any:
    try:
        return factory(**options)
    except Exception as problem:
        raise ArgumentError(
            f"`{model}` fails with {type(problem).__name__}: {problem} "
            "(arguments are given with --set NAME=VALUE)"
        ) from problem


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name.strip().isidentifier() and equals):
        raise ArgumentError(f"`--set {text}` must be NAME=VALUE, as in depth=12")
    name, value = name.strip(), value.strip()
    if value in ("true", "false"):  # as text both would be true
        return name, value == "true"
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value  # a plain word is a text
