"""From `package.module:factory` to a module, without memory where that is possible."""

import ast
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hotgrid.errors import ArgumentError, near

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
    factory = _member(_module(place), place, name)
    options = dict(map(_option, settings))
    if isinstance(factory, nn.Module):
        return factory
    if not callable(factory):
        raise ArgumentError(f"`{name}` in `{place}` is not a module, a class or a function")
    try:
        with torch.device("meta"):
            made = factory(**options)
    except Exception:  # noqa: BLE001  whatever it is, the second try says it again
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


def _module(place: str) -> ModuleType:
    if place.endswith(".py"):
        from hotgrid.grid.run._catalogue import imported

        if not Path(place).is_file():
            raise ArgumentError(f"there is no file `{place}` to take a model from")
        return imported(Path(place))
    # As `python -m` does; the program is a script elsewhere.
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as problem:
        if problem.name and f"{place}.".startswith(f"{problem.name}."):
            raise ArgumentError(
                f"there is no module `{problem.name}` here; name one that Python can import, "
                "or a file such as `models/net.py:Net`"
            ) from None
        raise ArgumentError(f"`{place}` needs `{problem.name}`, which is missing") from problem
    except Exception as problem:
        raise ArgumentError(
            f"importing `{place}` fails with {type(problem).__name__}: {problem}"
        ) from problem


def _member(module: ModuleType, place: str, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            public = [each for each in vars(module) if not each.startswith("_")]
            raise ArgumentError(f"`{place}` has no `{name}`{near(name, public)}")
        found = getattr(found, part)
    return found


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name.strip().isidentifier() and equals):
        raise ArgumentError(f"`--set {text}` must be NAME=VALUE, as in depth=12")
    try:
        return name.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        return name.strip(), value.strip()  # a plain word is a text
