"""A simulation that is watched; requests of a page are carried out between two steps."""

import contextlib
import itertools
import math
import re
import shlex
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import torch

from hotgrid.config import Case
from hotgrid.errors import ArgumentError, CommunicationError, HotgridError, StoreError
from hotgrid.grid.forms import Form, ParameterSchedule
from hotgrid.grid.output import Aspect, Picture, Recorder, solid_cells
from hotgrid.grid.run import LiveControl, Simulation, finite

from ._backlog import Backlog, Stopwatch
from ._eye import Eye, Making
from ._last_good import LastGood
from ._look import Frame, Gaze, cell_box
from ._reduce import few_threads
from ._strokes import Strokes

_SAVED = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
# Bytes that a step moves up to which a good state is copied at each look.
_MOST_KEPT = 1 << 30
# Seconds between two looks for numbers that are not finite, and between frames of a film.
_CHECK_EVERY = 2.0
_FILM_EVERY = 1 / 25
# Seconds between heartbeats to idle ranks.
_BEAT = 2.0
_END = "end"


class LiveRun:
    """A simulation and the operations that a user has on it.

    With a mesh every rank has one. Rank 0 broadcasts what it does; the other ranks `follow`
    and make the same calls in the same order.

    Arguments:
        name: The name of the model on the command line.
        simulation: The running simulation.
        case: The case that it was made from.
        folder: Where pictures, films and checkpoints go; made when the first is saved.
    """

    def __init__(self, name: str, simulation: Simulation, case: Case, folder: Path) -> None:
        self.name = name
        self.simulation = simulation
        self.case = case
        self._folder = folder
        self._eye = Eye(simulation)
        self.control = LiveControl(simulation)
        self._strokes = Strokes(self.control)
        self._good = LastGood()
        self._backlog = Backlog(simulation.device)
        self._film: tuple[Recorder, contextlib.ExitStack] | None = None
        self._filmed = self._checked = self._told = 0.0
        self._stamps = itertools.count(1)
        self._ranks = self.control.ranks
        self._begun = (self.control.start, self.control.plan)
        self._by_hand: dict[str, float] = {}
        self.files: dict[str, Path] = {}
        self.seed = simulation.seed

    @property
    def recording(self) -> bool:
        """Whether a film is being made."""
        return self._film is not None

    def follow(self) -> None:
        """Follow the first rank until it ends."""
        ranks = self._ranks
        if ranks is None or ranks.rank == 0:
            raise ArgumentError("`follow` is for ranks other than 0 of a mesh")
        with torch.no_grad():
            while True:
                name, *given = ranks.gather_json(None)[0]
                if name == _END:
                    ranks.barrier()
                    return
                # It is raised on every rank alike, and the first one reports it.
                with contextlib.suppress(HotgridError):
                    getattr(self, name)(*given)

    def _together(self, name: str, *given: Any) -> Any:
        """Call a method on every rank; what is given to it must be plain."""
        if self._ranks is not None:
            self._told = time.monotonic()
            self._ranks.gather_json([name, *given])
        return getattr(self, name)(*given)

    def rest(self) -> None:
        """Call while nothing is done: ranks that wait too long take the first one for lost."""
        if self._ranks is not None and time.monotonic() - self._told > _BEAT:
            self._together("_rest")

    def _rest(self) -> None: ...

    def apply(self, viewer: int, kind: str, fields: Mapping[str, Any]) -> dict[str, Any] | None:
        """Do what a message asks for; returns a further answer, if there is one.

        Raises:
            HotgridError: It cannot be done; the text says why.
        """
        return self._together("_apply", viewer, kind, dict(fields))

    def _apply(self, viewer: int, kind: str, fields: dict[str, Any]) -> dict[str, Any] | None:
        simulation = self.simulation
        self._good.forget()
        self._checked = 0.0
        with few_threads(simulation.device, math.prod(simulation.size)):
            return getattr(self, f"_{kind}")(viewer, **fields)

    def advance(self, steps: int) -> str:
        """Make steps; returns what is wrong with the numbers, or nothing."""
        now = time.monotonic()
        check = now - self._checked >= _CHECK_EVERY
        self._checked = now if check else self._checked
        return self._together("_advance", steps, check)

    def _advance(self, steps: int, check: bool) -> str:
        if self.control.advance(steps):
            self._good.forget()
        self._backlog.added()
        return self._check() if check else ""

    def check(self) -> str:
        """Look at all numbers now; returns what is wrong with them, or nothing."""
        self._checked = time.monotonic()
        return self._together("_check")

    def _check(self) -> str:
        simulation, form = self.simulation, self.control.form
        if form.everywhere(finite(form.own())):
            if simulation.bytes_per_step() <= _MOST_KEPT:
                self._good.keep(form, simulation.step_count)
            return ""
        return self._diverged(form)

    def _diverged(self, form: Form) -> str:
        """Go back to the last good step, if it is known; returns a message for viewers."""
        simulation = self.simulation
        good = self._good.go_back(form, simulation.step_count)
        if good is None:
            return "values are no longer finite. Reset to continue"
        self.control.rewound(good)
        cause = simulation.model.cause(simulation.state)
        return (
            f"values are no longer finite after step {good + 1:,}; this is step {good:,}. "
            f"Likely cause: {cause}. Reset to continue"
        )

    @property
    def painted(self) -> bool:
        """Whether the state has strokes, which no command or link can make again."""
        return self._strokes.any or self.control.painted_solid

    def making(self, look: Gaze) -> Making:
        """A frame of the present state, on its way."""
        # Serialise the view only if it is sent to other ranks.
        if self._ranks is None:
            return self._eye.making(look)
        return self._together("_making", asdict(look))

    def frame(self, look: Gaze) -> Frame | None:
        """A frame of the present state; None where the view cannot be drawn."""
        try:
            making = self.making(look)
            while not making.go_on():
                pass
        except CommunicationError:
            raise
        except Exception:  # noqa: BLE001  the model is the user's; viewers are shown the error
            return None
        return making.frame

    def _making(self, look: dict[str, Any]) -> Making:
        # Other ranks take part in the first stage only, and that is done at once.
        return self._eye.making(Gaze.of_plain(look))

    def observe(self) -> tuple[dict[str, float], float]:
        """The observables that are finite, and the seconds that they took."""
        return self._together("_observe")

    def _observe(self) -> tuple[dict[str, float], float]:
        simulation = self.simulation
        took = Stopwatch(simulation.device)
        with few_threads(simulation.device, math.prod(simulation.size)):
            found = simulation.observe()
        single = {k: v[0] if isinstance(v, list) else v for k, v in found.items()}
        return {k: float(v) for k, v in single.items() if math.isfinite(v)}, took.seconds()

    def film(self) -> None:
        """Add a frame to the film, if there is one and it is time.

        Raises:
            StoreError: It cannot be written; the film is over.
        """
        now = time.monotonic()
        if self._film is None or now - self._filmed < _FILM_EVERY:
            return
        self._filmed = now
        try:
            self._film[0].take(self.simulation)
        except OSError as problem:
            with contextlib.suppress(OSError, HotgridError):
                self._end_film()
            raise StoreError(
                f"the film cannot be continued: {problem.strerror or problem}"
            ) from None

    def value(self, look: Gaze, at: tuple[int, int]) -> float | None:
        """The number of one cell of a view; None where it is not finite."""
        return self._together("_value", asdict(look), list(at))

    def _value(self, look: dict[str, Any], at: list[int]) -> float | None:
        found = self._eye.value(Gaze.of_plain(look), (at[0], at[1]))
        return found if found is not None and math.isfinite(found) else None

    def is_solid(self, look: Gaze, at: tuple[int, int]) -> bool:
        """Whether a cell is solid; one rank knows it of all cells."""
        solid = solid_cells(self.simulation)
        box = cell_box(look, self.simulation.size, at)
        return solid is not None and bool(solid[box.slices].any())

    def saved(self) -> list[str]:
        """The checkpoints that can be loaded, and what was saved here, by name."""
        return sorted(
            {*self.files, *(path.name for path in self._folder.glob("*.safetensors"))}
        )

    def command(self) -> str:
        """A command line that makes the present set-up again."""
        case, options = self.case, dict(self._options())
        values = options.pop("set")
        if case.dtype != "float32":
            options["dtype"] = case.dtype
        options |= {name: v for name in ("device", "mesh") if (v := getattr(case, name))}
        words = ["hotgrid", "view", case.model]
        words += [word for name, value in options.items() for word in (f"--{name}", value)]
        words += [word for k, v in values.items() for word in ("--set", f"{k}={v}")]
        return shlex.join(map(str, words))

    def link(self) -> str:
        """The address of the present set-up on this server."""
        options = dict(self._options())
        pairs = [("set", f"{k}:{v}") for k, v in options.pop("set").items()]
        return f"/m/{quote(self.name)}?" + urlencode([*options.items(), *pairs], safe=":")

    def close(self) -> None:
        """End a film that is being made, and let other ranks end."""
        self._end_film()
        if self._ranks is not None and self._ranks.rank == 0:
            self._ranks.gather_json([_END])
            # The others must have heard it before this process ends.
            self._ranks.barrier()

    def _end_film(self) -> None:
        if self._film is not None:
            (_, opened), self._film = self._film, None
            opened.close()

    def _options(self) -> dict[str, Any]:
        """The size, the seed if it is not 0, and in `set` the values of parameters."""
        simulation, start = self.simulation, type(self.simulation.model)
        found: dict[str, Any] = {"size": "x".join(map(str, simulation.size))}
        if self.seed:
            found["seed"] = self.seed
        values = {name: str(value) for name, value in self.case.set.items()}
        now = simulation.model.parameters
        planned = self._begun[1].changes.keys() - self._by_hand.keys()
        for name, parameter in start._parameters.items():
            if name not in planned and (now[name] != parameter.default or name in values):
                values[name] = repr(now[name])
        return {**found, "set": values}

    def _reset(self, viewer: int, seed: int | None) -> None:
        start, plan = self._begun
        # Values that were set by hand stay, as the page shows them. So do changes that were
        # planned for others.
        start = start.changed(**self._by_hand) if self._by_hand else start
        kept = {name: each for name, each in plan.changes.items() if name not in self._by_hand}
        self.control.restart(start, ParameterSchedule(kept), seed)
        self.seed = self.simulation.seed
        self._strokes.forget()
        self._eye.forget_ranges()

    def _set(self, viewer: int, name: str, value: float) -> None:
        self._strokes.expect_held(value, self.control.setting.dtype)
        self.simulation.set(**{name: value})
        self._by_hand[name] = self.simulation.model.parameters[name]

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
        self._strokes.stamp(viewer, -next(self._stamps), rle, place)

    def _undo(self, viewer: int) -> None:
        if not self._strokes.undo():
            raise ArgumentError("there is no stroke to undo")
        self._eye.forget_ranges()

    def _redo(self, viewer: int) -> None:
        if not self._strokes.redo():
            raise ArgumentError("there is no stroke to redo")
        self._eye.forget_ranges()

    def _save(
        self, viewer: int, what: str, name: str, colours: str | None, look: dict[str, Any]
    ) -> dict[str, Any]:
        path = self._free(name, ".png" if what == "picture" else ".safetensors")
        if what == "picture":
            picture = Picture(self.simulation, _aspect(look, colours))
            if self.control.form.is_primary:
                picture.save(path)
        else:
            self.simulation.save(path)
        return self._saved(what, path)

    def _load(self, viewer: int, name: str) -> None:
        self.control.load(self._path(name, ".safetensors"))
        start, plan = self._begun
        self._by_hand = {
            name: value
            for name, value in self.simulation.model.parameters.items()
            if value != start.parameters[name] and name not in plan.changes
        }
        self._strokes.forget()
        self._eye.forget_ranges()

    def _record(
        self,
        viewer: int,
        on: bool,
        name: str | None,
        colours: str | None,
        look: dict[str, Any],
    ) -> dict[str, Any] | None:
        if on:
            if self._film is not None:
                raise ArgumentError("a film is being recorded already")
            if self._ranks is not None:
                raise ArgumentError("with a mesh, record with `hotgrid run --record`")
            stack = contextlib.ExitStack()
            name = name or f"film-{self.simulation.step_count}"
            path = self._free(name, _film_suffix())
            film = Recorder(self.simulation, path, 2**62, _aspect(look, colours))
            stack.enter_context(film)
            self._film = (film, stack)
            return None
        if self._film is None:
            raise ArgumentError("no film is being recorded")
        film = self._film[0]
        self._end_film()
        return self._saved("film", film.path)

    def _path(self, name: str, suffix: str) -> Path:
        if not _SAVED.fullmatch(name):
            raise ArgumentError(
                f"a name has letters, digits, `-` and `_`, at most 64, got {name!r}"
            )
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise ArgumentError(
                f"`{self._folder}` cannot be made: {problem.strerror}; choose another --out"
            ) from None
        return self._folder / f"{name}{suffix}"

    def _free(self, name: str, suffix: str) -> Path:
        """A path under that name where there is no file yet: with a number if needed."""
        path = self._path(name, suffix)
        # Ranks must agree on the name, so only the first looks.
        number = 2
        while self._exists(path):
            path = self._path(f"{name}-{number}", suffix)
            number += 1
        return path

    def _exists(self, path: Path) -> bool:
        if self._ranks is None or self._ranks.size == 1:
            return path.exists()
        return bool(self._ranks.gather_json(path.exists())[0])

    def _saved(self, what: str, path: Path) -> dict[str, Any]:
        self.files[path.name] = path
        return {"type": "saved", "what": what, "name": path.name, "url": f"/saved/{path.name}"}


def _aspect(look: dict[str, Any], colours: str | None) -> Aspect:
    """The view of a viewer as a picture: the whole plane, and a slice for a volume."""
    seen = Gaze.of_plain(look)
    return Aspect(seen.view, colours, seen.range, min(seen.axis, 2), seen.slice)


def _film_suffix() -> str:
    from importlib.util import find_spec

    return ".gif" if find_spec("av") is None else ".mp4"
