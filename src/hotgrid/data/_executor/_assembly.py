"""A batch while its samples are made, and as tensors once all are there."""

from concurrent.futures import Future
from typing import Any

import numpy as np
from torch import Tensor, from_numpy

from hotgrid.data._plan import ColumnType

from ._buffers import Buffers
from ._schedule import BatchRows


class Assembly:
    """The rows of one rank of a batch.

    Args:
        number: Which batch.
        rows: Its samples, of all ranks together.
        places: Which of these are of this rank.
        types: The columns.
        buffers: Where memory comes from.
    """

    def __init__(
        self,
        number: int,
        rows: BatchRows,
        places: range,
        types: dict[str, ColumnType],
        buffers: Buffers,
    ) -> None:
        self.number, self.rows, self.places = number, rows, places
        self.futures: list[Future[None]] = []
        self.dropped: set[int] = set()
        self._types, self._buffers = types, buffers
        self._columns: dict[str, Any] = {}
        for name, kind in types.items():
            if kind.fixed and kind.dtype is not None:
                self._columns[name] = buffers.take((len(places), *kind.sizes), kind.dtype)
            else:
                self._columns[name] = [None] * len(places)
        self._shaped = [name for name, kind in types.items() if kind.fixed and kind.shape]

    def slots(self, row: int) -> dict[str, Any]:
        """Where operators write the columns of a row."""
        return {name: self._columns[name][row] for name in self._shaped}

    def put(self, row: int, values: dict[str, Any], slots: dict[str, Any]) -> None:
        """Take the columns of a row; what is in its slot already is not copied."""
        for name, value in values.items():
            if value is not slots.get(name):
                self._columns[name][row] = value

    def tensors(self, pad: bool) -> dict[str, Any]:
        """The batch, once all futures are done: tensors, and lists of objects."""
        for future in self.futures:
            future.result()
        kept = [row for row in range(len(self.places)) if row not in self.dropped]
        whole = len(kept) == len(self.places)
        found: dict[str, Any] = {}
        for name, kind in self._types.items():
            column = self._columns[name]
            if kind.fixed:
                found[name] = self._buffers.lend(column) if whole else from_numpy(column[kept])
            else:
                values: Any = [column[row] for row in kept]
                if kind.dtype is not None and pad:
                    values = _padded(values, kind, self.rows.longest)
                found[name] = values
        return found


def _padded(values: list[Any], kind: ColumnType, longest: int | None) -> Tensor:
    """Arrays of different sizes in one, zeros at the ends."""
    arrays = [np.asarray(value, kind.dtype) for value in values]
    sizes = [
        max((array.shape[axis] for array in arrays), default=0) if size is None else size
        for axis, size in enumerate(kind.shape)
    ]
    if longest is not None and kind.shape[0] is None and sizes[0] <= longest:
        # Batches of a bucket have one shape, in all ranks.
        sizes[0] = longest
    found = np.zeros((len(arrays), *sizes), kind.dtype)
    for row, array in enumerate(arrays):
        found[(row, *(slice(0, size) for size in array.shape))] = array
    return from_numpy(found)
