"""`Eye`: makes frames of a simulation; cut, reduced and quantized on its device."""

import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.forms import GridState
from hotgrid.grid.output import CODED, Colours, solid_cells

from ._look import BITS, BYTES, VOLUME, Box, Frame, Gaze, box_of, cell_box
from ._reduce import SOLID, bits, colours_in, few_threads, means, quantized, sampled
from ._source import CutGrid, Source, WholeGrid


class Making:
    """A frame on its way.

    Arguments:
        stages: Stops where something has to arrive, and returns the frame.

    Attributes:
        done: Whether it is made.
        frame: The frame; None before that, and where another rank has it.
    """

    def __init__(self, stages: Generator[None, None, Frame | None]) -> None:
        self._stages = stages
        self.done = False
        self.frame: Frame | None = None

    def go_on(self) -> bool:
        """Do what can be done without waiting; whether it is made."""
        if not self.done:
            try:
                next(self._stages)
            except StopIteration as end:
                self.done, self.frame = True, end.value
        return self.done


@dataclass(frozen=True)
class _Sent:
    """A tensor on its way to main memory."""

    host: Tensor
    event: Any = None
    # The source of the copy must not be overwritten before it has arrived.
    source: Tensor | None = None

    @property
    def there(self) -> bool:
        return self.event is None or self.event.query()


class Eye:
    """Makes the frames of one simulation; keeps tensors that do not change between frames.

    Arguments:
        simulation: The simulation to show.
        source: The source of its numbers; by default the one that suits the simulation.
    """

    def __init__(self, simulation: GridState, source: Source | None = None) -> None:
        self._simulation = simulation
        cut = simulation._form.ranks is not None
        self._source = source or (CutGrid(simulation) if cut else WholeGrid(simulation))
        self._ranges: dict[tuple[str, int, bool], Colours] = {}
        self._hidden: tuple[object, Box, Tensor | None] | None = None
        self._side: Any = None

    def forget_ranges(self) -> None:
        """Start the range of the colours afresh, for example when a state was loaded."""
        self._ranges.clear()

    def frame(self, look: Gaze) -> Frame | None:
        """One frame of the present state in main memory; None where another rank has it.

        Raises:
            ArgumentError: The view is unknown or not made of real numbers.
        """
        making = self.making(look)
        while not making.go_on():
            pass
        return making.frame

    def making(self, look: Gaze) -> Making:
        """One frame of the present state, begun.

        On a GPU nothing here waits: numbers are copied meanwhile, and the next stage begins
        when they have arrived.
        """
        found = Making(self._stages(look))
        found.go_on()
        return found

    def _stages(self, look: Gaze) -> Generator[None, None, Frame | None]:
        simulation = self._simulation
        moment = simulation.step_count, simulation.time
        box = box_of(look, simulation.size)
        volume = len(box.shown) == 3
        with few_threads(simulation.device, _cells(simulation)):
            values = self._pixels(look.view, box)
            arrows = self._arrows(look, box)
            if values is None:
                return None
            coded = look.view in simulation.model.coloured
            followed = look.range is None and not coded
            states = self._source.is_whole(look.view) and not coded
            hidden = self._hidden_in(box)
        sent = [self._send(sampled(values, states))] if followed or states else []
        shifts = [] if arrows is None else [self._send(arrows)]
        while not all(each.there for each in (*sent, *shifts)):
            yield
        colours = (
            CODED if coded else self._colours(look, sent[0].host if sent else None, states)
        )
        two = colours.kind == "states" and (colours.low, colours.high) == (0, 1)
        as_bits = two and box.factor == 1 and hidden is None and not volume
        with few_threads(simulation.device, _cells(simulation)), self._beside(bool(sent)):
            found = bits(values) if as_bits else quantized(values, colours)
            if hidden is not None and not volume:
                found.masked_fill_(hidden, SOLID)
            body = self._send(found)
        while not body.there:
            yield
        kind = BITS if as_bits else VOLUME if volume else BYTES
        lengths, scale = (None, 0.0) if not shifts else _lengths(shifts[0].host)
        numbers = body.host.numpy()
        return Frame(numbers, lengths, kind, colours, box.region, scale, *moment)

    def value(self, look: Gaze, at: tuple[int, int]) -> float | None:
        """The number of one cell of a view; None where another rank has it."""
        with few_threads(self._simulation.device, _cells(self._simulation)):
            found = self._pixels(look.view, cell_box(look, self._simulation.size, at))
        return None if found is None else float(found)

    def _pixels(self, view: str, box: Box) -> Tensor | None:
        values = self._source.pixels(view, box)
        if values is not None and values.is_complex():
            raise ArgumentError(f"the view `{view}` is not made of real numbers")
        return values

    def _arrows(self, look: Gaze, box: Box) -> Tensor | None:
        """Velocities on a coarse lattice over the region, `[rows, columns, 2]`."""
        views = self._simulation.model.views()
        flow = {"velocity_x", "velocity_y"} <= views.keys()
        if not look.arrows or len(box.cells) != 2 or not flow:
            return None
        y0, x0, y1, x1 = box.region
        across = max(y1 - y0, x1 - x0) / look.arrows
        rows, columns = (max(1, round(n / across)) for n in (y1 - y0, x1 - x0))
        return self._source.arrows(box, rows, columns)

    def _colours(self, look: Gaze, sample: Tensor | None, states: bool) -> Colours:
        now = Colours("plain", 0.0, 1.0) if sample is None else colours_in(sample, states)
        if look.range is not None:
            return now.within(*look.range)
        key = (look.view, look.axis, look.volume)
        before = self._ranges.get(key)
        found = now if before is None else before.followed(now)
        self._ranges[key] = found
        return found

    def _hidden_in(self, box: Box) -> Tensor | None:
        """The pixels that are mostly solid."""
        simulation = self._simulation
        known = self._hidden
        if known is None or known[0] is not simulation.model or known[1] != box:
            solid = solid_cells(simulation)
            if solid is not None:
                cut = solid[box.slices].reshape([b - a for a, b in _seen(box)]).float()
                solid = (means(cut, box.factor) > 0.5).reshape(box.shown).to(simulation.device)
            known = self._hidden = (simulation.model, box, solid)
        return known[2]

    def _send(self, x: Tensor) -> _Sent:
        """Begin to copy a tensor to main memory, in parallel with the steps that are queued."""
        if x.device.type != "cuda":
            return _Sent(x)
        host = torch.empty(x.shape, dtype=x.dtype, pin_memory=True)
        side = self._stream(x.device)
        side.wait_event(torch.cuda.current_stream(x.device).record_event())
        with torch.cuda.stream(side):
            host.copy_(x, non_blocking=True)
            return _Sent(host, side.record_event(), x)

    def _stream(self, device: torch.device) -> Any:
        if self._side is None:
            self._side = torch.cuda.Stream(device)
        return self._side

    def _beside(self, arrived: bool) -> Any:
        """The stream to compute on: beside that of the steps, if the inputs are ready."""
        device = self._simulation.device
        if device.type != "cuda" or not arrived:
            return contextlib.nullcontext()
        return torch.cuda.stream(self._stream(device))


def _cells(simulation: GridState) -> int:
    return int(np.prod(simulation.size))


def _seen(box: Box) -> list[tuple[int, int]]:
    """The first and last cells along the axes that are seen."""
    found = [ends for i, ends in enumerate(box.cells) if i != box.axis]
    return [(0, 1), *found] if len(found) == 1 else found


def _lengths(arrows: Tensor) -> tuple["np.ndarray[Any, Any]", float]:
    """Arrows as bytes, and the speed of the longest."""
    scale = float(arrows.norm(dim=-1).max()) or 1.0
    whole = (arrows * (127 / scale)).nan_to_num().round().clamp(-127, 127)
    return whole.to(torch.int8).numpy(), scale
