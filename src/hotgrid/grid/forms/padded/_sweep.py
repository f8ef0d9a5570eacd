"""Steps launched by the native core: cache by cache, and without a call to torch for each.

A step is compiled for a short piece of the flat grid. The core calls that kernel, with
all its pointers moved along, wherever a piece is to be made: several steps deep while it
is in the cache, on all threads. A compiled call to torch costs about 100 us; here that is
paid once for many steps.
"""

from typing import Any

import torch
from torch import Tensor

from hotgrid import _native
from hotgrid.grid.forms._form import CELLS_PER_THREAD

# The least pieces, and cells, of one step before the next step follows.
_PIECES_AHEAD, _CELLS_AHEAD = 8, 2048
# A thread is worth waiting for if it makes this many cells, or numbers, of a step.
_NUMBERS_PER_THREAD = 1 << 15


def sweep_of(
    kernel: Any,
    quiet: Any,
    marks: Tensor | None,
    *,
    cells: int,
    numbers: int,
    piece: int,
    reach: int,
) -> Any:
    """The core's sweep over kernels.

    Arguments:
        kernel: Makes any piece.
        quiet: Makes pieces that are not marked.
        marks: For every piece whether it needs `kernel`, uint8 `[pieces]`; None if all do.
        cells: How many cells a step computes; after them is space for a piece.
        numbers: How many numbers each cell has.
        piece: How many cells a call computes.
        reach: How many cells to either side it reads.
    """
    # The steps of a sweep trail each other by whole pieces.
    behind, pieces = -(-reach // piece) * piece, -(-cells // piece)
    ahead = max(behind, _PIECES_AHEAD * piece, -(-_CELLS_AHEAD // piece) * piece)
    worth = max(cells // CELLS_PER_THREAD, cells * numbers // _NUMBERS_PER_THREAD)
    threads = max(1, min(torch.get_num_threads(), worth))
    return _native.core().Sweep(
        kernel, quiet, marks, pieces * piece, piece, behind, ahead, threads
    )
