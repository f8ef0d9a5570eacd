"""Names for objects that a compiled graph has to find again.

An operator of torch takes tensors, numbers and text, never a Python object. So an object
that an operator needs gets a name that lives as long as the object does. Names are counted
up, so that ranks and runs of one program give the same ones, and the compiler finds its
cached code again.
"""

import itertools
from typing import Any
from weakref import WeakValueDictionary

from hotgrid.errors import ArgumentError

_COUNT = itertools.count()
_ALIVE: WeakValueDictionary[str, Any] = WeakValueDictionary()


def named(thing: object) -> str:
    """Return a new name under which `thing` is found as long as it lives."""
    name = f"{type(thing).__name__}-{next(_COUNT)}"
    _ALIVE[name] = thing
    return name


def found(name: str) -> Any:
    """Return what has a name."""
    thing = _ALIVE.get(name)
    if thing is None:
        raise ArgumentError(f"`{name}` is gone: keep it for as long as compiled code uses it")
    return thing
