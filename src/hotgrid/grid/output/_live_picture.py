"""A simulation that plays in a notebook, through anywidget."""

import asyncio
import functools
import importlib.util
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hotgrid.errors import HotgridError
from hotgrid.grid.forms import GridState

from ._picture import draw
from ._reduced_view import ReducedView

_MOST_ROWS, _MOST_COLUMNS, _CURVE_ROWS = 512, 768, 160
# Seconds that the notebook waits for steps before it may do something else.
_SLICE = 0.03
# Frames that were sent but not yet drawn by the page.
_IN_FLIGHT = 2
_HEADER = struct.Struct("<2I2d")


def can_play() -> bool:
    """Whether this is a notebook where anywidget is installed."""
    shell = sys.modules.get("IPython")
    ipython = shell and shell.get_ipython()
    if getattr(ipython, "kernel", None) is None:
        return False
    return importlib.util.find_spec("anywidget") is not None


class LivePicture:
    """One view of a simulation in a notebook, with buttons to play, pause and step.

    It plays in the event loop of the notebook: never while a cell runs, and only while the page
    draws what it is sent. What is played is the simulation itself, which cells may continue.

    Arguments:
        simulation: What is played.
        view: One of the model's views; by default the model's own choice.
        advance: Makes a number of steps; by default one after the other.

    Attributes:
        widget: The `anywidget.AnyWidget`, to be put into other widgets. Its traits are `frame`
            (rows, columns, low, high, then one byte for each pixel), `palette`, `step`, `time`,
            `playing`, `view`, `views`, `steps_per_frame` (0 for as many as there is time for)
            and `problem`.
    """

    def __init__(
        self,
        simulation: GridState,
        view: str | None = None,
        advance: Callable[[int], object] | None = None,
    ) -> None:
        self._simulation = simulation
        self._advance = advance or self._step_by_step
        self._view = ReducedView(simulation, view)
        self._sent = self._seen = 0
        self._steps_in_time = 1
        self._task: asyncio.Task[None] | None = None
        self.widget: Any = _widget_class()(
            title=type(simulation.model).__name__,
            view=self._view.name,
            views=list(simulation.model.views()),
        )
        self.refresh()
        # Cells that live or die flicker when generations are left out.
        self.widget.steps_per_frame = int(self._view.colours.kind == "states")
        self.widget.observe(self._pick, "view")
        self.widget.observe(self._play, "playing")
        self.widget.on_msg(self._hear)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.widget._repr_mimebundle_(**options)

    def save(self, path: str | Path) -> Path:
        """Write a still picture of the present state, as `Picture.save` does.

        Raises:
            ArgumentError: The suffix is unknown or the path cannot be written.
        """
        return draw(self._simulation, self._view.name, path=path)

    def refresh(self) -> None:
        """Show the state as it is now."""
        simulation = self._simulation
        rows, columns = (_CURVE_ROWS, *simulation.size)[-2:]
        image = self._view.image(min(rows, _MOST_ROWS), min(columns, _MOST_COLUMNS))
        colours = self._view.colours
        header = _HEADER.pack(*image.shape, colours.low, colours.high)
        self._sent += 1
        with self.widget.hold_sync():
            self.widget.palette = colours.palette().tobytes()
            self.widget.step, self.widget.time = simulation.step_count, simulation.time
            self.widget.number = self._sent
            self.widget.frame = header + image.tobytes()

    def _hear(self, widget: object, content: object, buffers: object) -> None:
        """Handle a message of the page: it has drawn a frame, or wants one step."""
        match content:
            case {"kind": "drawn", "number": int(number)} if number <= self._sent:
                self._seen = max(self._seen, number)
            case {"kind": "step"} if not self.widget.playing:
                self._attempt(1)
            case _:
                pass

    def _pick(self, change: Any) -> None:
        if change["new"] in self._simulation.model.views():
            self._view = ReducedView(self._simulation, change["new"])
            self._attempt(0)

    def _play(self, change: Any) -> None:
        if change["new"] and self._task is None:
            self.widget.problem = ""
            self._seen = self._sent
            self._task = asyncio.get_running_loop().create_task(self._go())

    async def _go(self) -> None:
        try:
            while self.widget.playing:
                if self._sent - self._seen < _IN_FLIGHT:
                    self._attempt(self.widget.steps_per_frame or self._steps_in_time)
                await asyncio.sleep(_SLICE)
        finally:
            self._task = None
            self.widget.playing = False

    def _attempt(self, steps: int) -> None:
        try:
            begin = time.perf_counter()
            self._advance(steps)
            if steps:
                rate = steps / (time.perf_counter() - begin)
                self._steps_in_time = min(max(1, int(rate * _SLICE)), 2 * steps)
            self.refresh()
        except HotgridError as problem:
            self.widget.problem = str(problem)
            self.widget.playing = False

    def _step_by_step(self, steps: int) -> None:
        for _ in range(steps):
            self._simulation.step()


@functools.cache
def _widget_class() -> Any:
    import anywidget
    import traitlets

    class Widget(anywidget.AnyWidget):
        _esm = Path(__file__).with_name("live_picture.js")
        title = traitlets.Unicode().tag(sync=True)
        frame = traitlets.Bytes().tag(sync=True)
        palette = traitlets.Bytes().tag(sync=True)
        number = traitlets.Int().tag(sync=True)
        step = traitlets.Int().tag(sync=True)
        time = traitlets.Float().tag(sync=True)
        playing = traitlets.Bool().tag(sync=True)
        view = traitlets.Unicode().tag(sync=True)
        views = traitlets.List(traitlets.Unicode()).tag(sync=True)
        steps_per_frame = traitlets.Int(min=0, max=1_000_000).tag(sync=True)
        problem = traitlets.Unicode().tag(sync=True)

    return Widget
