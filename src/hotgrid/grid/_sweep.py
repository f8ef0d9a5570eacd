"""Steps launched by the native core: cache by cache, and without a call to torch for each.

A step is compiled for a short piece of the flat grid. The core calls that kernel, with
all its pointers moved along, wherever a piece is to be made: several steps deep while it
is in the cache, on all threads. A compiled call to torch costs about 100 us; here that is
paid once for many steps.
"""

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hotgrid import _native

from ._form import CELLS_PER_THREAD
from ._tape import Tape, taped

# Cells that are made of one step before the next is turned to, where steps reach little.
_AHEAD = 2048


def kernel_of(
    call: Callable[[int], None], outs: Sequence[Sequence[Tensor]], moving: Sequence[Tensor]
) -> Any:
    """The core's handle to the kernel behind a compiled step, or None where it has none.

    Arguments:
        call: Makes the first piece of a step out of the first or the second buffer.
        outs: What it then writes.
        moving: Tensors whose cells lie flat, and move along from piece to piece.
    """
    if not _native.available():
        return None
    call(0)  # compiles
    tapes = [taped(lambda old=old: call(old), outs[old]) for old in range(2)]
    if [len(tape) for tape in tapes] != [1, 1] or tapes[0][0][0] is not tapes[1][0][0]:
        return None
    address = _address(tapes[0])
    strides = [_strides(tape, moving) for tape in tapes]
    if address is None or strides[0] is None or strides[0] != strides[1]:
        return None
    pointers = [[x.data_ptr() for x in tape[0][1]] for tape in tapes]
    return _native.core().Kernel(address, *pointers, strides[0])


def sweep_of(
    kernel: Any, quiet: Any, marks: Tensor | None, *, cells: int, piece: int, reach: int
) -> Any:
    """The core's sweep over kernels.

    Arguments:
        kernel: Makes any piece.
        quiet: Makes pieces that are not marked.
        marks: For every piece whether it needs `kernel`, uint8 `[pieces]`; None if all do.
        cells: How many cells a step computes; behind them is room for a piece.
        piece: How many cells a call computes.
        reach: How many cells to either side it looks.
    """
    # The steps of a sweep trail each other by whole pieces.
    behind, pieces = -(-reach // piece) * piece, -(-cells // piece)
    ahead = max(behind, -(-_AHEAD // piece) * piece)
    threads = max(1, min(torch.get_num_threads(), cells // CELLS_PER_THREAD))
    return _native.core().Sweep(
        kernel, quiet, marks, pieces * piece, piece, behind, ahead, threads
    )


def _address(tape: Tape) -> int | None:
    """Where the kernel behind a Python function lies: its library exports it by name."""
    file = getattr(getattr(tape[0][0], "__self__", None), "__file__", None)
    if file is None or not Path(file).is_file():
        return None
    try:
        kernel = ctypes.CDLL(file).kernel
    except (OSError, AttributeError):
        return None
    return ctypes.cast(kernel, ctypes.c_void_p).value


def _strides(tape: Tape, moving: Sequence[Tensor]) -> list[int] | None:
    """By how many bytes each argument moves from cell to cell; None for one unknown."""
    rooms = {x.untyped_storage().data_ptr() for x in moving}
    found: list[int] = []
    for x in tape[0][1]:
        if not isinstance(x, Tensor):
            return None
        if x.untyped_storage().data_ptr() in rooms:
            found.append(x.element_size())
        elif x.ndim == 0:
            found.append(0)
        else:
            return None
    return found
