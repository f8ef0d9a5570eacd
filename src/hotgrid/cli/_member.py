"""Finds an object by its name in a `package.module` or a `file.py`."""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hotgrid.errors import ArgumentError, near


def member(place: str, name: str) -> Any:
    """Import a module or a Python file, and return the object with a name in it.

    Args:
        place: `package.module`, or `file.py`.
        name: The name; dots lead further in.

    Raises:
        ArgumentError: There is no such module, file or name, or importing it fails.
    """
    module = _module(place)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            public = [each for each in vars(module) if not each.startswith("_")]
            raise ArgumentError(f"`{place}` has no `{name}`{near(name, public)}")
        found = getattr(found, part)
    return found


def _module(place: str) -> ModuleType:
    if place.endswith(".py"):
        from hotgrid.grid.run._catalogue import imported

        if not Path(place).is_file():
            raise ArgumentError(f"there is no file `{place}`")
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
