"""hotgrid: dynamics on dense grids, and the AI tools that stand on the same floor.

`import hotgrid as hg` is light. Rooms (`hg.contracts`, `hg.tensors`, ...) load
when they are first touched, so nothing pays for torch before it needs it.
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from ._version import __version__ as __version__

if TYPE_CHECKING:
    from . import (
        cli as cli,
        config as config,
        contracts as contracts,
        errors as errors,
        kernels as kernels,
        tensors as tensors,
    )

_ROOMS = ("cli", "config", "contracts", "errors", "kernels", "tensors")


def __getattr__(name: str) -> ModuleType:
    if name in _ROOMS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(
        f"module 'hotgrid' has no attribute {name!r}; its rooms are {', '.join(_ROOMS)}"
    )


def __dir__() -> list[str]:
    return sorted([*_ROOMS, "__version__"])
