"""life: two-state cellular automata on square and cubic grids, and their patterns.

`Life` and `Life3D` count neighbours by a `Rule`, `WindowRule` takes any function over
windows. Patterns come from the library, from RLE and from `.cells`. A part of `grid`.
"""

from ._library import pattern as pattern, pattern_names as pattern_names
from ._life import Life as Life, Life3D as Life3D
from ._pattern import Pattern as Pattern
from ._plaintext import read_cells as read_cells, write_cells as write_cells
from ._rle import read_rle as read_rle, write_rle as write_rle
from ._rule import RULES as RULES, Rule as Rule
from ._window_rule import WindowRule as WindowRule
