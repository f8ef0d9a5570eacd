"""hotgrid: dynamics on dense grids, and the AI tools that stand on the same floor.

`import hotgrid as hg` is light. Rooms (`hg.contracts`, `hg.grid`, ...) load when
they are first touched, so nothing pays for torch before it needs it. What is
used most has a short name: `hg.Simulation`, `hg.life`, `hg.lbm`, `hg.pde`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__ as __version__

if TYPE_CHECKING:
    from . import (
        cli as cli,
        cluster as cluster,
        config as config,
        contracts as contracts,
        errors as errors,
        grid as grid,
        kernels as kernels,
        store as store,
        tensors as tensors,
        tokens as tokens,
    )
    from .grid import Simulation as Simulation, lbm as lbm, life as life, pde as pde

_ROOMS = (
    "cli",
    "cluster",
    "config",
    "contracts",
    "errors",
    "grid",
    "kernels",
    "store",
    "tensors",
    "tokens",
)
_SHORT = {"Simulation": "grid", "lbm": "grid", "life": "grid", "pde": "grid"}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _SHORT:
        return getattr(importlib.import_module(f"{__name__}.{_SHORT[name]}"), name)
    raise AttributeError(
        f"module 'hotgrid' has no attribute {name!r}; it has {', '.join((*_SHORT, *_ROOMS))}"
    )


def __dir__() -> list[str]:
    return sorted([*_ROOMS, *_SHORT, "__version__"])
