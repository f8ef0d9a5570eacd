"""Views and strokes of the cells that one rank stores, in cells as users see them."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from hotgrid.grid.forms._form import Form, Setting
from hotgrid.grid.model import Model, SeenState, State, observed

Cells = tuple[int, ...]


class Grid(Protocol):
    """The methods of a `GridState` that are used here."""

    model: Model
    size: Cells
    device: torch.device
    state: Any
    _form: Form
    _setting: Setting
    _edits: int

    def look(self, name: str) -> Tensor: ...
    def _first_run(self, stored: State) -> State: ...
    def _looks(self, stored: State | None = None) -> Iterator[SeenState]: ...


@dataclass(frozen=True)
class _Own:
    """Where the cells of this rank are.

    Attributes:
        first: The first of them.
        shape: How many there are along each axis.
        ratio: How many cells share a stored number, along each axis.
    """

    first: Cells
    shape: Cells
    ratio: Cells


def _own(grid: Grid) -> _Own:
    stored = next(iter(grid._form.own().values())).shape[-len(grid.size) :]
    ratio = tuple(n // m for n, m in zip(grid.size, grid._setting.size, strict=True))
    return _Own(_scaled(grid._form.offset, ratio), _scaled(tuple(stored), ratio), ratio)


def _scaled(cells: Cells, ratio: Cells) -> Cells:
    return tuple(n * r for n, r in zip(cells, ratio, strict=True))


class _Around(NamedTuple):
    """The cells stored here with others around: a model of them, fields, and the own cells."""

    model: Model
    stored: State
    inside: tuple[slice, ...]


def _around(grid: Grid, reach: int) -> _Around:
    """So many cells around those that are stored here; a collective call if the grid is cut."""
    model, own = grid.model, _own(grid)
    stored, box = grid._form.part(reach, model.joined_axes(len(grid.size)))
    offset = _scaled(box.offset, own.ratio)
    inside = tuple(
        slice(a - b, a - b + n) for a, b, n in zip(own.first, offset, own.shape, strict=True)
    )
    part = model.within(grid.size, offset, _scaled(box.size, own.ratio)) or model
    return _Around(part, stored, inside)


def look_here(grid: Grid, name: str) -> tuple[Tensor, Cells]:
    """A view of the cells that are stored here, and the first of them."""
    form, reach = grid._form, grid.model.reach_of(name)
    if form.ranks is None or reach is None or not grid._setting.model.splits:
        seen = grid.look(name)
        return seen if form.is_primary else seen[:0], (0,) * seen.ndim
    model, stored, inside = _around(grid, reach)
    seen = model.views()[name](SeenState(grid._first_run(stored)))
    return seen[inside], _own(grid).first


def look_at(grid: Grid, name: str, cells: Sequence[range]) -> Tensor:
    """A view at some cells of a grid that is cut, the same on every rank; a collective call.

    What travels are these cells alone.

    Arguments:
        grid: The grid.
        name: The view.
        cells: The places along each axis.
    """
    here, first = look_here(grid, name)
    found = here.new_zeros([len(places) for places in cells])
    into, of = [], []
    for places, low, count in zip(cells, first, here.shape, strict=True):
        all_ = torch.tensor(places, device=here.device)
        mine = ((all_ >= low) & (all_ < low + count)).nonzero()[:, 0]
        into.append(mine)
        of.append(all_[mine] - low)
    found[torch.meshgrid(*into, indexing="ij")] = here[torch.meshgrid(*of, indexing="ij")]
    ranks = grid._form.ranks
    if ranks is None:
        return found
    # Backends do not add up every type.
    floats = torch.float32 if found.dtype.itemsize < 4 else found.dtype
    added = found.to(floats if found.is_floating_point() else torch.int64).to(ranks.device)
    ranks.all_reduce(added)
    return added.to(found.dtype)


def _seen_here(grid: Grid) -> Iterator[SeenState]:
    """The own cells of every run, from which `once` methods reach those around."""
    for run, state in enumerate(grid._looks(grid._form.own())):

        def wider(method: Callable[[Any, State], Any], reach: int, run: int = run) -> Any:
            model, stored, inside = _around(grid, reach)
            found = method(model, next(islice(grid._looks(stored), run, None)))
            if isinstance(found, Tensor):
                return found[(..., *inside)]
            return [x[(..., *inside)] for x in found]

        yield SeenState(state, wider)


def observe_parts(grid: Grid) -> dict[str, list[float]]:
    """Observables that follow from those of parts, of every run; none if it is not cut."""
    form, own = grid._form, _own(grid)
    if form.ranks is None or not grid._setting.model.splits:
        return {}
    model = grid.model.within(grid.size, own.first, own.shape)
    watched = {} if model is None else model.observables()
    ways = {name: way for name in watched if (way := grid.model.over_parts(name))}
    if not ways:
        return {}
    rows = [
        [observed(model, name, watched[name](state)) for name in ways]
        for state in _seen_here(grid)
    ]
    share = math.prod(own.shape) / math.prod(grid.size)
    weights = [share if way == "mean" else 1.0 for way in ways.values()]
    largest = torch.tensor(rows, dtype=torch.float64, device=form.ranks.device)
    sums = largest * largest.new_tensor(weights)
    form.ranks.all_reduce(sums)
    form.ranks.all_reduce(largest, "max")
    return {
        name: (largest if way == "max" else sums)[:, k].tolist()
        for k, (name, way) in enumerate(ways.items())
    }


def look_box(grid: Grid, stored: State, name: str, cells: Sequence[tuple[int, int]]) -> Tensor:
    """A view of a box of a whole grid, computed from the cells near it where that is known.

    Arguments:
        grid: The grid, not cut.
        stored: Its fields, as its form stores them.
        name: The view.
        cells: The first cell and the one after the last, along each axis.
    """
    model, reach = grid.model, grid.model.reach_of(name)
    joined = model.joined_axes(len(grid.size))
    ratio = _own(grid).ratio
    ends: list[tuple[int, int]] = []
    for (a, b), n, r, wraps in zip(cells, grid.size, ratio, joined, strict=True):
        low, high = a - (reach or 0), b + (reach or 0)
        if reach is None or (wraps and reach and (low < 0 or high > n)):
            low, high = 0, n
        ends.append((max(0, low) // r * r, min(n, -(-high // r) * r)))
    offset, size = tuple(low for low, _ in ends), tuple(high - low for low, high in ends)
    part = model if size == grid.size else model.within(grid.size, offset, size)
    if part is None:
        part, offset = model, (0,) * len(ends)
    elif size != grid.size:
        where = tuple(slice(a // r, b // r) for (a, b), r in zip(ends, ratio, strict=True))
        stored = {key: x[(..., *where)] for key, x in stored.items()}
    seen = part.views()[name](SeenState(grid._first_run(stored)))
    return seen[tuple(slice(a - o, b - o) for (a, b), o in zip(cells, offset, strict=True))]


def _rows(mask: Tensor) -> tuple[int, int]:
    """The first row with a stroke, and the one after the last; of one dim all or nothing."""
    if not mask.numel():
        return 0, 0
    rows = np.asarray(mask.cpu().numpy().any(axis=tuple(range(1, mask.ndim))))
    if mask.ndim == 1:
        return (0, len(mask)) if rows.any() else (0, 0)
    found = rows.nonzero()[0]
    return (int(found[0]), int(found[-1]) + 1) if len(found) else (0, 0)


def paint_here(grid: Grid, brush: str, mask: Tensor, value: float) -> None:
    """Paint into the cells that are stored here; only rows with a stroke are touched."""
    form, own = grid._form, _own(grid)
    here = mask[tuple(slice(a, a + n) for a, n in zip(own.first, own.shape, strict=True))]
    low, high = _rows(here)
    first, shape = (own.first[0] + low, *own.first[1:]), (high - low, *own.shape[1:])
    model = grid.model.within(grid.size, first, shape)
    if model is None or not grid._setting.model.splits:
        grid.state = grid.model.painted(grid.state, brush, mask.to(grid.device), value)
        return
    grid._edits += 1
    fresh = {name: x.clone() for name, x in form.own().items()}
    if low < high:
        dim, rows = -len(shape), (low // own.ratio[0], (high - low) // own.ratio[0])
        part = SeenState(grid._first_run({k: x.narrow(dim, *rows) for k, x in fresh.items()}))
        painted = model.painted(part, brush, here[low:high].to(grid.device), value)
        for name, x in grid._setting.model.stored(painted).items():
            into = fresh[name].narrow(dim, *rows)
            into.copy_(x.reshape(into.shape))
    # Also where nothing changed: all ranks must exchange their margins at the same time.
    form.restore(fresh)
