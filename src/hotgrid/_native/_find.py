"""Finding the compiled core, once, and saying clearly why it is not there."""

import importlib
import os
from functools import cache
from types import ModuleType

from hotgrid.errors import MissingPartError

_OFF = ("off", "0", "no", "false")


def available() -> bool:
    """Whether the native core is here and loads.

    Example:
        >>> from hotgrid import _native
        >>> isinstance(_native.available(), bool)
        True
    """
    return isinstance(_found(), ModuleType)


def missing() -> str | None:
    """Why the native core is absent, or None when it is here."""
    found = _found()
    return None if isinstance(found, ModuleType) else found


def core() -> ModuleType:
    """The native module.

    Raises:
        MissingPartError: The core is not built, does not load, or is switched off.
    """
    found = _found()
    if isinstance(found, ModuleType):
        return found
    raise MissingPartError(f"this needs hotgrid's native core, and {found}")


@cache
def _found() -> ModuleType | str:
    setting = os.environ.get("HOTGRID_NATIVE", "on")
    if setting.lower() in _OFF:
        return f"HOTGRID_NATIVE={setting} switches it off; unset it to use the core"
    try:
        return importlib.import_module("hotgrid._native._core")
    except ModuleNotFoundError:
        return "it is not built here; run `pip install .` where there is a C++20 compiler"
    except ImportError as problem:
        # A core built for another Python or machine: rebuilding is the only cure.
        return (
            f"it does not load ({problem}); rebuild it with `pip install --force-reinstall .`"
        )
