"""hotgrid: dynamics on dense grids, and AI tools on the same foundations.

`import hotgrid as hg` is light: packages (`hg.contracts`, `hg.grid`, ...) are imported when
they are first used, and torch with them. What is used most has a short name: `hg.Simulation`,
`hg.Model`, `hg.Field`, `hg.Parameter`, `hg.view`, `hg.observable`, `hg.life`, `hg.lbm`,
`hg.pde`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__ as __version__

if TYPE_CHECKING:
    from . import (
        blt as blt,
        chat as chat,
        cluster as cluster,
        config as config,
        contracts as contracts,
        data as data,
        errors as errors,
        files as files,
        grid as grid,
        kernels as kernels,
        nn as nn,
        progress as progress,
        store as store,
        tensors as tensors,
        tokens as tokens,
        train as train,
        vision as vision,
        web as web,
    )
    from .grid import (
        Field as Field,
        Model as Model,
        Parameter as Parameter,
        Simulation as Simulation,
        lbm as lbm,
        life as life,
        neural as neural,
        observable as observable,
        pde as pde,
    )
    from .grid.model import view as view

_PACKAGES = (
    "blt",
    "chat",
    "cluster",
    "config",
    "contracts",
    "data",
    "errors",
    "files",
    "grid",
    "kernels",
    "nn",
    "progress",
    "store",
    "tensors",
    "tokens",
    "train",
    "vision",
    "web",
)
_SHORT = dict.fromkeys(
    (
        "Field",
        "Model",
        "Parameter",
        "Simulation",
        "lbm",
        "life",
        "neural",
        "observable",
        "pde",
    ),
    "grid",
) | {"view": "grid.model"}


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _SHORT:
        return getattr(importlib.import_module(f"{__name__}.{_SHORT[name]}"), name)
    raise AttributeError(
        f"module 'hotgrid' has no attribute {name!r}; it has {', '.join((*_SHORT, *_PACKAGES))}"
        ", and other names are in these packages, such as hotgrid.grid.Input"
    )


def __dir__() -> list[str]:
    return sorted([*_PACKAGES, *_SHORT, "__version__"])
