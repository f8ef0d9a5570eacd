"""A simulation that is watched: what a page asks of it, done between two steps."""

import contextlib
import math
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hotgrid.config import Case
from hotgrid.errors import ArgumentError
from hotgrid.grid.output import Recorder, draw
from hotgrid.grid.run import Simulation, finite, wait_for

from ._look import Eye, Frame, Gaze
from ._strokes import Strokes

_SAVED = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
# Seconds between two looks for numbers that are not finite, and between frames of a film.
_CHECK_EVERY = 2.0
_FILM_EVERY = 1 / 25


class LiveRun:
    """A simulation and what can be done with it by hand.

    With a mesh every rank has one, and all of them make the same calls in the same order.

    Arguments:
        name: The model as the command line names it.
        simulation: What runs.
        case: What it was made from.
        folder: Where pictures, films and checkpoints go; made when the first is saved.
    """

    def __init__(self, name: str, simulation: Simulation, case: Case, folder: Path) -> None:
        self.name = name
        self.simulation = simulation
        self.case = case
        self._folder = folder
        self._eye = Eye(simulation)
        self._strokes = Strokes(simulation)
        self._film: tuple[Recorder, contextlib.ExitStack] | None = None
        self._filmed = self._checked = 0.0
        self.files: dict[str, Path] = {}
        self.seed = simulation.seed

    @property
    def recording(self) -> bool:
        """Whether a film is being made."""
        return self._film is not None

    def apply(self, viewer: int, kind: str, fields: Mapping[str, Any]) -> dict[str, Any] | None:
        """Do what a message asks for; returns a further answer, if there is one.

        Raises:
            HotgridError: It cannot be done; the text says why.
        """
        return getattr(self, f"_{kind}")(viewer, **fields)

    def advance(self, steps: int) -> str:
        """Make steps; returns what is wrong with the numbers, or nothing."""
        simulation = self.simulation
        while steps > 0:
            form = simulation._ready()
            change = simulation._schedule.next_change(simulation.step_count)
            now = steps if change is None else min(steps, change - simulation.step_count)
            form.run(now)
            simulation.step_count += now
            steps -= now
        simulation._follow()
        wait_for(simulation.device)
        at = time.monotonic()
        if at - self._checked < _CHECK_EVERY:
            return ""
        self._checked = at
        form = simulation._form
        if form.everywhere(finite(form.own())):
            return ""
        cause = simulation.model.cause(simulation.state)
        return f"the numbers are no longer finite; likely cause: {cause}. Reset to go on"

    def frame(self, look: Gaze) -> Frame:
        """A frame of the present state in main memory."""
        return self._eye.frame(look).on_host()

    def film(self) -> None:
        """Add a frame to the film, if there is one and it is time."""
        now = time.monotonic()
        if self._film is not None and now - self._filmed >= _FILM_EVERY:
            self._filmed = now
            self._film[0].take(self.simulation)

    def value(self, look: Gaze, at: tuple[int, int]) -> float | None:
        """The number of one cell of a view; None where it is not finite."""
        found = self._eye.value(look, at)
        return found if math.isfinite(found) else None

    def command(self) -> str:
        """A command line that makes the present set-up again."""
        return " ".join(["hotgrid view", self.name, *self._options(" ", "=", "--")])

    def link(self) -> str:
        """The address of the present set-up on this server."""
        return f"/m/{self.name}?" + "&".join(self._options("=", ":", ""))

    def close(self) -> None:
        """End a film that is being made."""
        if self._film is not None:
            self._film[1].close()
            self._film = None

    def _options(self, space: str, equals: str, dashes: str) -> list[str]:
        simulation, start = self.simulation, type(self.simulation.model)
        found = [f"{dashes}size{space}{'x'.join(map(str, simulation.size))}"]
        if self.seed:
            found.append(f"{dashes}seed{space}{self.seed}")
        values = {name: str(value) for name, value in self.case.set.items()}
        now = simulation.model.parameters
        for name, parameter in start._parameters.items():
            if now[name] != parameter.default or name in values:
                values[name] = f"{now[name]:.12g}"
        quoted = lambda text: (
            f"'{text}'" if dashes and re.search(r"[\s;&|<>*?$]", text) else text
        )
        return [
            *found,
            *(f"{dashes}set{space}{quoted(f'{k}{equals}{v}')}" for k, v in values.items()),
        ]

    def _reset(self, viewer: int, seed: int | None) -> None:
        simulation = self.simulation
        # Values that were set by hand stay: they are what the page shows.
        simulation._start, simulation._schedule = simulation.model, type(simulation._schedule)()
        if seed is not None:
            self.seed = simulation.seed = seed
        simulation.reset()
        self._strokes.forget()

    def _set(self, viewer: int, name: str, value: float) -> None:
        self.simulation.set(**{name: value})

    def _stroke(
        self,
        viewer: int,
        stroke: int,
        brush: str,
        value: float,
        radius: float,
        points: list[list[float]],
        axis: int,
        slice: int,
    ) -> None:
        plane = (axis, slice) if len(self.simulation.size) == 3 else None
        self._strokes.stroke(viewer, stroke, brush, value, radius, points, plane)

    def _stamp(self, viewer: int, rle: str, at: list[float]) -> None:
        place = (math.floor(at[0]), math.floor(at[1]))
        self._strokes.stamp(viewer, -time.monotonic_ns(), rle, place)

    def _undo(self, viewer: int) -> None:
        if not self._strokes.undo():
            raise ArgumentError("there is no stroke to undo")

    def _redo(self, viewer: int) -> None:
        if not self._strokes.redo():
            raise ArgumentError("there is no stroke to redo")

    def _save(self, viewer: int, what: str, name: str) -> dict[str, Any]:
        path = self._path(name, ".png" if what == "picture" else ".safetensors")
        if what == "picture":
            picture = draw(self.simulation)
            if self.simulation._form.is_primary:
                picture.save(path)
        else:
            self.simulation.save(path)
        return self._saved(what, path)

    def _load(self, viewer: int, name: str) -> None:
        self.simulation.load(self._path(name, ".safetensors"))
        self._strokes.forget()

    def _record(self, viewer: int, on: bool) -> dict[str, Any] | None:
        if on:
            if self._film is not None:
                raise ArgumentError("a film is being recorded already")
            if self.simulation._form.ranks is not None:
                raise ArgumentError("with a mesh, record with `hotgrid run --record`")
            stack = contextlib.ExitStack()
            path = self._path(f"film-{self.simulation.step_count}", _film_suffix())
            film = Recorder(self.simulation, path, every=2**62)
            stack.enter_context(film)
            self._film = (film, stack)
            return None
        if self._film is None:
            raise ArgumentError("no film is being recorded")
        film = self._film[0]
        self.close()
        return self._saved("film", film.path)

    def _path(self, name: str, suffix: str) -> Path:
        if not _SAVED.fullmatch(name):
            raise ArgumentError(
                f"a name has letters, digits, `-` and `_`, at most 64, got {name!r}"
            )
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder / f"{name}{suffix}"

    def _saved(self, what: str, path: Path) -> dict[str, Any]:
        self.files[path.name] = path
        return {"type": "saved", "what": what, "name": path.name, "url": f"/saved/{path.name}"}


def _film_suffix() -> str:
    from importlib.util import find_spec

    return ".gif" if find_spec("av") is None else ".mp4"
