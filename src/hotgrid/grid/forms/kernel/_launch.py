"""A kernel that the native core can call, and what it is given.

Torch compiles a step into a library that exports its kernel by name. The kernel takes
nothing but pointers, and does one piece of the flat grid.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from hotgrid import _native

from ._tape import Tape, put_back, taped


@dataclass(frozen=True)
class Launch:
    """A kernel in a library.

    Attributes:
        file: The library.
        pointers: The arguments of a step out of the first buffer, and out of the second.
        strides: By how many bytes each of them moves from cell to cell.
    """

    file: str
    pointers: list[list[int]]
    strides: list[int]

    def kernel(self) -> Any:
        """The core's handle to it, or None where the library does not expose it."""
        try:
            function = ctypes.CDLL(self.file).kernel
        except (OSError, AttributeError):
            return None
        address = ctypes.cast(function, ctypes.c_void_p).value
        if any(len(pointers) != len(self.strides) for pointers in self.pointers):
            return None
        return _native.core().Kernel(address, *self.pointers, self.strides)


def launch_of(
    call: Callable[[int], None], outs: Sequence[Sequence[Tensor]], moving: Sequence[Tensor]
) -> Launch | None:
    """The kernel of a compiled step of one piece, or None if it cannot be found.

    Arguments:
        call: Makes the first piece of a step out of the first or the second buffer.
        outs: What it then writes; it is restored at the end.
        moving: Tensors whose cells are flat, and move along from piece to piece.
    """
    with put_back([*outs[0], *outs[1]]):
        call(0)  # compiles
        tapes = [taped(lambda old=old: call(old), outs[old]) for old in range(2)]
    if [len(tape) for tape in tapes] != [1, 1] or tapes[0][0][0] is not tapes[1][0][0]:
        return None
    file = getattr(getattr(tapes[0][0][0], "__self__", None), "__file__", None)
    strides = [_strides(tape, moving) for tape in tapes]
    if file is None or not Path(file).is_file():
        return None
    if strides[0] is None or strides[0] != strides[1]:
        return None
    pointers = [[x.data_ptr() for x in tape[0][1]] for tape in tapes]
    return Launch(str(file), pointers, strides[0])


def _strides(tape: Tape, moving: Sequence[Tensor]) -> list[int] | None:
    """By how many bytes each argument moves from cell to cell; None for one unknown."""
    storages = {x.untyped_storage().data_ptr() for x in moving}
    found: list[int] = []
    for x in tape[0][1]:
        if not isinstance(x, Tensor):
            return None
        if x.untyped_storage().data_ptr() in storages:
            found.append(x.element_size())
        elif x.ndim == 0:
            found.append(0)
        else:
            return None
    return found
