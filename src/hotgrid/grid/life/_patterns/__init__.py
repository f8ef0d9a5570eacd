"""Patterns: cells with a name, the library of them, and the formats they are written in."""

from ._library import (
    find_pattern as find_pattern,
    pattern as pattern,
    pattern_names as pattern_names,
)
from ._pattern import Pattern as Pattern
from ._plaintext import read_cells as read_cells, write_cells as write_cells
from ._rle import read_rle as read_rle, write_rle as write_rle
