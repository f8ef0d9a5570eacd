"""The parts of a margin that one step reads, found by tracing it without numbers."""

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from hotgrid.grid.forms._form import Setting
from hotgrid.grid.model import Field, Input, Neighbours

Needs = dict[tuple[int, int], list[int]]
"""Components, by the axis and the side of a margin."""


class _Watched:
    """A field without numbers that records which of its neighbours were read."""

    def __init__(self, setting: Setting, kind: Field | Input) -> None:
        dtype = kind.dtype or setting.dtype
        # A step never sees the batch dim.
        self._planes = [
            torch.empty(setting.size, dtype=dtype, device="meta")
            for _ in range(kind.components)
        ]
        self.asked: set[tuple[int, tuple[int, ...]]] = set()
        self.handle = Neighbours(self._planes, self._look, setting.rank, setting.model.radius)

    def _look(self, plane: Tensor, offset: tuple[int, ...]) -> Tensor:
        component = next(k for k, each in enumerate(self._planes) if each is plane)
        self.asked.add((component, offset))
        return plane

    def needs(self, rank: int) -> Needs:
        """The components that are read beyond either side of every axis."""
        return {
            (axis, side): sorted({k for k, offset in self.asked if offset[axis] * side > 0})
            for axis in range(rank)
            for side in (-1, 1)
        }


def crossing(setting: Setting) -> Sequence[Needs | None]:
    """For every field, the components that one step reads in which margin.

    A population of a lattice crosses a side in one direction only, so that a third of
    them has to be sent. The trace of a step shows it: no model has to declare it. None means
    all components, if a step cannot be traced without numbers.
    """
    watched = _watched_step(setting)
    if watched is None:
        return [None] * len(setting.model.fields)
    return [watched[field.name].needs(setting.rank) for field in setting.model.fields]


def asked_of_inputs(setting: Setting) -> dict[str, list[tuple[int, tuple[int, ...]]]]:
    """For every input, the components and offsets that one step reads."""
    watched = _watched_step(setting)
    reach = range(-setting.model.radius, setting.model.radius + 1)
    return {
        known.name: list(itertools.product(range(known.components), cube))
        if watched is None
        else sorted(watched[known.name].asked)
        for known in setting.model.inputs
        for cube in [list(itertools.product(reach, repeat=setting.rank))]
    }


def _watched_step(setting: Setting) -> dict[str, _Watched] | None:
    """Fields and inputs after one step; None where it cannot be traced without numbers."""
    model = setting.model
    fields = {field.name: _Watched(setting, field) for field in model.fields}
    inputs = {known.name: _Watched(setting, known) for known in model.inputs}
    params = {
        name: torch.empty((), dtype=x.dtype, device="meta")
        for name, x in setting.params.items()
    }
    try:
        model.step(
            {name: each.handle for name, each in fields.items()},
            {name: each.handle for name, each in inputs.items()},
            params,
        )
    except (NotImplementedError, RuntimeError):
        return None
    return {**fields, **inputs}
