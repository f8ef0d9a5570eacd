"""life: cellular automata, lattice gases, and patterns of cells.

`Life` and `Life3D` count neighbours by a `Rule`, `WindowRule` takes any function over
windows. `Generations`, `LargerThanLife`, `HexLife`, `Isotropic`, `Elementary`, `Wireworld`
and `Margolus` have rules of their own; `HPP` and `FHP` are gases. Patterns come from the
library, from RLE and from `.cells`. A part of `grid`.
"""

from ._elementary import Elementary as Elementary
from ._gases import FHP as FHP, HPP as HPP
from ._generations import Generations as Generations
from ._hexagonal import HexLife as HexLife
from ._isotropic import Isotropic as Isotropic
from ._larger import LargerThanLife as LargerThanLife
from ._life import Life as Life, Life3D as Life3D
from ._margolus import BLOCK_RULES as BLOCK_RULES, Margolus as Margolus
from ._patterns import (
    Pattern as Pattern,
    pattern as pattern,
    pattern_names as pattern_names,
    read_cells as read_cells,
    read_rle as read_rle,
    write_cells as write_cells,
    write_rle as write_rle,
)
from ._rules import (
    RULES as RULES,
    Bounds as Bounds,
    GenerationsRule as GenerationsRule,
    IsotropicRule as IsotropicRule,
    LargerRule as LargerRule,
    Rule as Rule,
)
from ._window_rule import WindowRule as WindowRule
from ._wireworld import Wireworld as Wireworld
