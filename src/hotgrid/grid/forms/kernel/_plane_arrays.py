"""Tensors as arrays of planes, and what torch does to dims done to such arrays.

A plane is a tensor over the cells of a piece. An array holds numbers of planes, in the dims
of the tensor that it represents; dims that run over cells have the size 1 in it. So numpy's
indexing, broadcasting and views do to the array what torch does to the whole tensor, and
no tensor is touched.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

Numbers = npt.NDArray[np.int64]


class NotInPlanesError(Exception):
    """An operation that cannot be done plane by plane."""


@dataclass(frozen=True)
class PlaneArray:
    """A tensor as an array of planes.

    Attributes:
        planes: Their numbers.
        lanes: The dims that run over cells; none where there is one number for all cells.
        cells: The sizes of these dims.
    """

    planes: Numbers
    lanes: tuple[int, ...]
    cells: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor."""
        sizes = list(self.planes.shape)
        for lane, n in zip(self.lanes, self.cells, strict=False):
            sizes[lane] = n
        return tuple(sizes)

    def axis(self, dim: int) -> int:
        """A dim counted from 0; one that runs over cells is refused."""
        found = dim % max(1, self.planes.ndim)
        if found in self.lanes:
            raise NotInPlanesError
        return found

    def moved(self, planes: Numbers, lanes: Sequence[int]) -> "PlaneArray":
        """Other planes of the same cells."""
        if tuple(sorted(lanes)) != tuple(lanes):
            raise NotInPlanesError
        return PlaneArray(planes, tuple(lanes), self.cells)

    def indexed(self, axis: int, index: Any) -> "PlaneArray":
        """A view, as basic indexing along one axis gives it."""
        gone = isinstance(index, int)
        where = (*[slice(None)] * axis, index, ...)
        lanes = [lane - (gone and lane > axis) for lane in self.lanes]
        return self.moved(self.planes[where], lanes)

    def padded(self, ndim: int) -> "PlaneArray":
        """The array with dims of size 1 in front."""
        lacking = ndim - self.planes.ndim
        planes = self.planes[(*[None] * lacking, ...)]
        return self.moved(planes, [lane + lacking for lane in self.lanes])


def aligned(arrays: Sequence[PlaneArray]) -> list[PlaneArray]:
    """Arrays broadcast to each other; those without lanes stay without."""
    ndim = max(x.planes.ndim for x in arrays)
    padded = [x.padded(ndim) for x in arrays]
    lanes = {x.lanes for x in padded if x.lanes}
    if len(lanes) > 1:
        raise NotInPlanesError
    for lane in next(iter(lanes), ()):
        if any(x.planes.shape[lane] != 1 for x in padded):
            raise NotInPlanesError
    planes = np.broadcast_arrays(*[x.planes for x in padded])
    return [PlaneArray(p, x.lanes, x.cells) for p, x in zip(planes, padded, strict=True)]


def _view(x: PlaneArray, size: Sequence[int]) -> PlaneArray:
    whole, rest = int(np.prod(x.shape)), int(np.prod([n for n in size if n != -1]))
    sizes = [whole // rest if n == -1 else n for n in size]
    lanes: list[int] = []
    for lane, n in zip(x.lanes, x.cells, strict=False):
        before = int(np.prod(x.shape[:lane]))
        found = [k for k, m in enumerate(sizes) if m == n and int(np.prod(sizes[:k])) == before]
        if not found:
            raise NotInPlanesError
        lanes.append(found[0])
    planes = x.planes.reshape([1 if k in lanes else n for k, n in enumerate(sizes)])
    # What is written into one of them must be seen in the other.
    if not np.shares_memory(planes, x.planes):
        raise NotInPlanesError
    return x.moved(planes, lanes)


def _unsqueeze(x: PlaneArray, dim: int) -> PlaneArray:
    axis = dim % (x.planes.ndim + 1)
    lanes = [lane + (lane >= axis) for lane in x.lanes]
    return x.moved(np.expand_dims(x.planes, axis), lanes)


def _squeeze(x: PlaneArray, dim: int | Sequence[int] | None = None) -> PlaneArray:
    dims = range(x.planes.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    wanted = {d % max(1, x.planes.ndim) for d in dims} - set(x.lanes)
    for axis in sorted(wanted, reverse=True):
        if x.planes.ndim and x.planes.shape[axis] == 1:
            x = x.indexed(axis, 0)
    return x


def _slice(
    x: PlaneArray,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> PlaneArray:
    axis = dim % x.planes.ndim
    if axis in x.lanes:
        n = x.shape[axis]
        if (start or 0) not in (0, -n) or (n if end is None else end) < n or step != 1:
            raise NotInPlanesError
        return x
    return x.indexed(axis, slice(start, end, step))


def _select(x: PlaneArray, dim: int, index: int) -> PlaneArray:
    return x.indexed(x.axis(dim), index)


def _unbind(x: PlaneArray, dim: int = 0) -> list[PlaneArray]:
    axis = x.axis(dim)
    return [x.indexed(axis, k) for k in range(x.planes.shape[axis])]


def _split(x: PlaneArray, size: int | Sequence[int], dim: int = 0) -> list[PlaneArray]:
    axis = x.axis(dim)
    n = x.planes.shape[axis]
    if isinstance(size, int):
        size = [min(size, n - k) for k in range(0, n, size)]
    ends = np.cumsum(size).tolist()
    return [x.indexed(axis, slice(e - s, e)) for e, s in zip(ends, size, strict=True)]


def _permute(x: PlaneArray, dims: Sequence[int]) -> PlaneArray:
    order = [d % x.planes.ndim for d in dims]
    return x.moved(x.planes.transpose(order), [order.index(lane) for lane in x.lanes])


def _transpose(x: PlaneArray, a: int, b: int) -> PlaneArray:
    order = list(range(x.planes.ndim))
    order[a], order[b] = order[b], order[a]
    return _permute(x, order)


def _expand(x: PlaneArray, size: Sequence[int], implicit: bool = False) -> PlaneArray:
    x = x.padded(len(size))
    sizes = [
        n if k in x.lanes or m == -1 else m
        for k, (m, n) in enumerate(zip(size, x.planes.shape, strict=True))
    ]
    return x.moved(np.broadcast_to(x.planes, sizes), x.lanes)


def _repeat(x: PlaneArray, times: Sequence[int]) -> PlaneArray:
    x = x.padded(len(times))
    if any(times[lane] != 1 for lane in x.lanes):
        raise NotInPlanesError
    return x.moved(np.tile(x.planes, times), x.lanes)


def _flip(x: PlaneArray, dims: Sequence[int]) -> PlaneArray:
    return x.moved(np.flip(x.planes, tuple(x.axis(d) for d in dims)).copy(), x.lanes)


def _roll(x: PlaneArray, shifts: Sequence[int], dims: Sequence[int] = ()) -> PlaneArray:
    if len(shifts) != len(dims):
        raise NotInPlanesError
    return x.moved(np.roll(x.planes, shifts, [x.axis(d) for d in dims]), x.lanes)


def _cat(xs: Sequence[PlaneArray], dim: int = 0) -> PlaneArray:
    if len({(x.lanes, x.planes.ndim) for x in xs}) > 1:
        raise NotInPlanesError
    axis = xs[0].axis(dim)
    return xs[0].moved(np.concatenate([x.planes for x in xs], axis), xs[0].lanes)


def _stack(xs: Sequence[PlaneArray], dim: int = 0) -> PlaneArray:
    axis = dim % (xs[0].planes.ndim + 1)
    return _cat([_unsqueeze(x, axis) for x in xs], axis)


def _index_select(x: PlaneArray, dim: int, index: Tensor) -> PlaneArray:
    return x.moved(x.planes.take(index.numpy(), x.axis(dim)), x.lanes)


def _index(x: PlaneArray, indices: Sequence[Tensor | None]) -> PlaneArray:
    """Index by one list of constant numbers; lists and masks together are not supported."""
    given = [k for k, each in enumerate(indices) if each is not None]
    index = indices[given[0]] if len(given) == 1 else None
    if not isinstance(index, Tensor) or index.ndim != 1 or index.is_floating_point():
        raise NotInPlanesError
    numbers = index.nonzero().flatten() if index.itemsize == 1 else index
    return _index_select(x, given[0], numbers)


def _copied(x: PlaneArray) -> PlaneArray:
    return x.moved(x.planes.copy(), x.lanes)


def _same(x: PlaneArray) -> PlaneArray:
    return x


MOVES: dict[str, Callable[..., Any]] = {
    "view": _view,
    "reshape": _view,
    "_unsafe_view": _view,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "slice": _slice,
    "select": _select,
    "unbind": _unbind,
    "split": _split,
    "split_with_sizes": _split,
    "permute": _permute,
    "transpose": _transpose,
    "t": lambda x: _permute(x, range(x.planes.ndim)[::-1]),
    "expand": _expand,
    "repeat": _repeat,
    "flip": _flip,
    "roll": _roll,
    "cat": _cat,
    "stack": _stack,
    "index_select": _index_select,
    "index": _index,
    "clone": _copied,
    "lift_fresh_copy": _copied,
    "alias": _same,
    "detach": _same,
}
"""Torch operations that rearrange dims, by name."""
