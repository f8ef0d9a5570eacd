"""The state that a session keeps for its viewers and for its run."""

import time
from dataclasses import dataclass, field
from typing import Any

from hotgrid.grid.forms import GridState
from hotgrid.web import MessageError, PageMessage, Viewer

from ._eye import Making
from ._look import Gaze


@dataclass
class Seat:
    """The state that a session keeps for one viewer."""

    viewer: Viewer
    look: Gaze
    looks: int = 0
    shown: tuple[Any, ...] = ()
    due: float = 0.0
    waits: bool = False


@dataclass
class Batch:
    """A frame on its way, and the looks of those that it is for."""

    making: Making
    seats: list[tuple[Seat, int]]


@dataclass
class Transport:
    """Whether and how fast it runs."""

    playing: bool = True
    rate: float = 0.0
    goal: int | None = None
    owed: float = 0.0
    stride: int = 1
    paced: float = field(default_factory=time.monotonic)


def first_gaze(simulation: GridState) -> Gaze:
    """The view of a viewer before it asks for another."""
    size, model = simulation.size, simulation.model
    plane = (1, *size) if len(size) == 1 else size[-2:]
    view = model.picture or next(iter(model.views()))
    return Gaze(view, (0.0, 0.0, float(plane[0]), float(plane[1])))


def gaze_of(simulation: GridState, message: PageMessage, number: int) -> Gaze:
    """The view that a message asks for, the `number`-th of its viewer.

    Raises:
        MessageError: There is no such view, or the range is empty.
    """
    fields = dict(message.fields)
    if fields["view"] not in simulation.model.views():
        raise MessageError(f"there is no view {fields['view']!r}")
    bounds = fields.pop("range")
    if bounds is not None and not bounds[0] < bounds[1]:
        raise MessageError("`range` of `look` must be two numbers, the smaller first")
    return Gaze(
        view=fields["view"],
        region=tuple(fields["region"]),
        pixels=tuple(fields["pixels"]),
        axis=fields["axis"],
        slice=fields["slice"],
        range=None if bounds is None else (bounds[0], bounds[1]),
        arrows=fields["arrows"],
        volume=fields["volume"],
        number=number,
    )
