"""Two-state cells, 32 in a word: packing, steps on words, and handwritten passes."""

from ._counts import PackedCounts as PackedCounts
from ._packed import (
    CELLS_PER_WORD as CELLS_PER_WORD,
    PackedLife as PackedLife,
    packed as packed,
    unpacked as unpacked,
)
from ._window import PackedWindow as PackedWindow
