"""`Session`: one simulation in its own thread, and the viewers that share it."""

import contextlib
import logging
import math
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import torch

from hotgrid import kernels
from hotgrid.errors import CommunicationError, HotgridError
from hotgrid.grid.forms import Form
from hotgrid.web import MessageError, PageMessage, Viewer, parse_message

from ._hello import hello
from ._live import LiveRun
from ._look import Frame, Gaze
from ._orders import ACK, KINDS, LOOK
from ._seat import Batch, Seat, Transport, first_gaze, gaze_of
from ._step_rate import StepRate

_LOG = logging.getLogger("hotgrid.view")
# Seconds that a run of steps should take: a page may wait this long for an answer.
_SLICE = 0.012
# On a GPU two are queued, and a frame needs three on its way.
_SLICE_ON_GPU = 0.004
_SLICE_UNWATCHED = 0.1
_POLL = 0.0005
_FRAME = 1 / 60
_STATUS = 0.25
# Observables may take this share of the time.
_OBSERVING = 0.03
_OBSERVING_ON_GPU = 0.005
_HISTORY = 2000


class Session:
    """Runs one simulation and shows it to any number of viewers.

    The simulation has a thread of its own, which makes steps, frames and changes in turn, so
    that a change falls between two steps. A viewer that is slow gets fewer frames.

    Arguments:
        live: The simulation to run.
        playing: Whether it runs from the start.
    """

    def __init__(self, live: LiveRun, *, playing: bool = True) -> None:
        self.live = live
        self._transport = Transport(playing=playing)
        self._seats: dict[int, Seat] = {}
        self._lock = threading.Lock()
        self._inbox: queue.SimpleQueue[tuple[Viewer, PageMessage]] = queue.SimpleQueue()
        self._wake = threading.Event()
        self._ended = False
        self._history: deque[tuple[int, dict[str, float]]] = deque(maxlen=_HISTORY)
        self._first: dict[str, float] = {}
        self._speed = 0.0
        self._rate = StepRate()
        self._status_due = 0.0
        self._share = 255
        self._edits = 0
        self._reported: set[str] = set()
        self._batches: list[Batch] = []
        self._stale_until = math.inf
        # The form that has made steps, so that it is compiled.
        self._ran: weakref.ref[Form] | None = None
        self._compiling = False
        self._still: Frame | None = None
        self._thread = threading.Thread(target=self._run, name="hotgrid-view", daemon=True)

    def start(self) -> "Session":
        """Begin to run."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End the thread and wait for it, but not for a step that is being compiled."""
        self._ended = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(0.2 if self._compiling and not self.live.recording else 10)

    @property
    def viewers(self) -> int:
        """How many pages look at it."""
        return len(self._seats)

    def join(self, viewer: Viewer) -> None:
        """Show it to one more viewer."""
        viewer.tell(hello(self.live, viewer.number))
        # Copied: the thread of the run goes on adding to it.
        history, names = list(self._history), list(self._first)
        steps = [step for step, _ in history]
        values = {name: [row.get(name) for _, row in history] for name in names}
        viewer.tell({"type": "history", "steps": steps, "values": values})
        with self._lock:
            self._seats[viewer.number] = Seat(viewer, first_gaze(self.live.simulation))
            if self._compiling:
                viewer.tell({"type": "compiling"})
                if self._still is not None:
                    viewer.show(self._still.packed(viewer.next_frame, 0, 255))
        self._status_due = 0.0
        self._wake.set()

    def leave(self, viewer: Viewer) -> None:
        """Show it to a viewer no longer."""
        with self._lock:
            self._seats.pop(viewer.number, None)

    async def receive(self, viewer: Viewer, text: str | bytes) -> None:
        """Take a message of a viewer.

        Raises:
            MessageError: It is not one that the page may send.
        """
        message = parse_message(text, KINDS)
        seat = self._seats.get(viewer.number)
        if seat is None:
            return
        if message.type == ACK:
            viewer.acknowledge(message.fields["frame"])
        elif message.type == LOOK:
            seat.looks += 1
            seat.look = gaze_of(self.live.simulation, message, seat.looks)
        else:
            self._inbox.put((viewer, message))
        self._wake.set()

    def _run(self) -> None:
        with torch.no_grad():
            while not self._ended:
                try:
                    changed = self._answer()
                    # Before the steps: the first of them may compile for seconds.
                    shown = self._show()
                    self._tell_status(changed)
                    moved = self._advance()
                    self.live.film()
                    if not (moved or changed or shown):
                        self.live.rest()
                except CommunicationError as problem:
                    # Another rank is gone: nothing can be computed any more.
                    self._failed(str(problem))
                    return
                except HotgridError as problem:
                    self._failed(str(problem))
                    continue
                except Exception as problem:  # noqa: BLE001  the page must show it
                    _LOG.exception("the simulation failed")
                    self._failed(f"the simulation failed: {problem}")
                    continue
                if not (moved or changed or shown):
                    self._wake.wait(self._idle())
                    self._wake.clear()
                elif not moved and self._batches:
                    time.sleep(_POLL)
        self.live.close()

    def _failed(self, text: str) -> None:
        """Stop, and tell the viewers why."""
        self._transport.playing, self._transport.goal = False, None
        self._drop_frames()
        self._tell_all({"type": "error", "text": text})

    def _report_once(self, text: str) -> None:
        if text not in self._reported:
            self._reported.add(text)
            _LOG.warning("%s", text)
            self._tell_all({"type": "error", "text": text})

    def _idle(self) -> float:
        """How long nothing needs to be done."""
        stale = max(0.0, self._stale_until - time.monotonic())
        if self._transport.playing and self._transport.rate:
            return min(0.05, 1 / self._transport.rate, stale)
        return min(0.1 if self._transport.playing or self._seats else 0.5, stale)

    def _answer(self) -> bool:
        """Execute the requests of viewers since the last call."""
        any_done = False
        while not self._inbox.empty():
            viewer, message = self._inbox.get()
            any_done = True
            try:
                answer = self._perform(viewer, message)
            except HotgridError as problem:
                reply = {"type": "error", "text": str(problem)}
                viewer.tell(reply if message.id is None else {**reply, "id": message.id})
                continue
            if answer is not None:
                viewer.tell(answer if message.id is None else {**answer, "id": message.id})
            elif message.id is not None:
                viewer.tell({"type": "done", "id": message.id})
        return any_done

    def _perform(self, viewer: Viewer, message: PageMessage) -> dict[str, Any] | None:
        transport, fields = self._transport, message.fields
        now = self.live.simulation.step_count
        match message.type:
            case "play":
                transport.playing, transport.goal, transport.owed = True, None, 0.0
                transport.paced = time.monotonic()
            case "pause":
                transport.playing, transport.goal = False, None
                self._stopped(self.live.check())
            case "step":
                # Presses may come faster than steps are made.
                pending = now if transport.goal is None else transport.goal
                transport.playing, transport.goal = False, pending + fields["count"]
            case "goto":
                if fields["step"] < now:
                    if self.live.painted:
                        text = "Earlier steps are recomputed, without your brush strokes."
                        self._tell_all({"type": "notice", "text": text})
                    self.live.apply(viewer.number, "reset", {"seed": None})
                    self._history.clear()
                    self._first = {}
                transport.playing, transport.goal = False, fields["step"]
            case "speed":
                transport.rate, transport.owed = fields["rate"], 0.0
            case "value":
                return self._value(viewer, fields)
            case kind:
                if kind in ("save", "record"):
                    # The look of a viewer that has just left is that of a new one.
                    seat = self._seats.get(viewer.number)
                    look = seat.look if seat else first_gaze(self.live.simulation)
                    fields = {**fields, "look": asdict(look)}
                answer = self.live.apply(viewer.number, kind, fields)
                self._edits += 1
                if kind in ("reset", "load"):
                    self._history.clear()
                    self._first = {}
                if kind == "stroke":
                    self._tell_others(viewer, fields)
                return answer
        return None

    def _value(self, viewer: Viewer, fields: Any) -> dict[str, Any]:
        seat = self._seats.get(viewer.number)
        view = fields["view"] or (seat.look.view if seat else "")
        if view not in self.live.simulation.model.views():
            raise MessageError(f"there is no view {view!r}")
        look = Gaze(view, (0, 0, 1, 1), axis=fields["axis"], slice=fields["slice"])
        at = (math.floor(fields["at"][0]), math.floor(fields["at"][1]))
        value = self.live.value(look, at)
        solid = value is None and self.live.is_solid(look, at)
        return {"type": "value", "at": list(at), "value": value, "solid": solid}

    def _advance(self) -> bool:
        """Make some steps, if it runs; whether any were made."""
        transport, simulation = self._transport, self.live.simulation
        steps = transport.stride
        if transport.goal is not None:
            steps = min(steps, transport.goal - simulation.step_count)
        elif not transport.playing:
            return False
        elif transport.rate:
            now = time.monotonic()
            owed = transport.owed + (now - transport.paced) * transport.rate
            transport.paced = now
            # Steps that the machine cannot keep up with are not made up for later.
            steps = min(int(owed), steps)
            transport.owed = min(owed - steps, max(1.0, transport.rate * _STATUS))
        problem = ""
        if steps > 0:
            self._rate.note(time.monotonic(), simulation.step_count)
            began = time.perf_counter()
            with self._maybe_compiling():
                problem = self.live.advance(steps)
            self._adapt(steps, time.perf_counter() - began)
            self._rate.note(time.monotonic(), simulation.step_count)
        reached = transport.goal is not None and simulation.step_count >= transport.goal
        if problem or reached:
            self._stopped(problem or self.live.check())
        return steps > 0

    def _stopped(self, problem: str) -> None:
        """Make no more steps; report what is wrong with the numbers, if anything is."""
        transport = self._transport
        transport.playing, transport.goal = False, None
        self._status_due = 0.0
        self._rate.forget()
        if problem:
            self._tell_all({"type": "error", "text": problem})

    @contextlib.contextmanager
    def _maybe_compiling(self) -> Iterator[None]:
        """Tell viewers that steps may be compiled in the block; the next status ends that."""
        control = self.live.control
        ran = None if self._ran is None else self._ran()
        if ran is control.form or not control.form.compiled:
            yield
            return
        # Steps cannot be interrupted: pages that open meanwhile see this frame.
        self._still = self.live.frame(first_gaze(control.simulation))
        self._compiling = True
        self._tell_all({"type": "compiling"})
        try:
            yield
        finally:
            self._ran = weakref.ref(control.form)
            with self._lock:
                self._compiling = False
            self._status_due = 0.0
            self._rate.forget()

    def _adapt(self, steps: int, took: float) -> None:
        """Make as many steps at a time as fill a slice."""
        transport = self._transport
        watched = _SLICE_ON_GPU if self.live.simulation.device.type == "cuda" else _SLICE
        wanted = watched if self._seats else _SLICE_UNWATCHED
        if steps == transport.stride and took < wanted / 2:
            transport.stride = min(2 * transport.stride, 1 << 20)
        elif took > 2 * wanted and transport.stride > 1:
            transport.stride = max(1, int(steps * wanted / took))

    def _show(self) -> bool:
        """Make the frames that viewers can take now."""
        simulation, now = self.live.simulation, time.monotonic()
        edits = self.live.control.edits
        present = (simulation.step_count, edits, self._edits, id(simulation.model))
        with self._lock:
            seats = list(self._seats.values())
        groups: dict[Gaze, list[tuple[Seat, int]]] = {}
        self._stale_until = math.inf
        for seat in seats:
            look = seat.look
            if seat.waits or not seat.viewer.ready or seat.shown == (*present, look):
                continue
            if now < seat.due:
                self._stale_until = min(self._stale_until, seat.due)
                continue
            groups.setdefault(look.group(), []).append((seat, look.number))
            # Also if it fails: it would fail again, without end.
            seat.shown, seat.due = (*present, look), now + _FRAME
        for look, seen_by in groups.items():
            making = self.live.making(look)
            for seat, _ in seen_by:
                seat.waits = True
            self._batches.append(Batch(making, seen_by))
        # Old ones first: a viewer must not see a frame before an earlier one.
        self._batches = [batch for batch in self._batches if not self._sent(batch)]
        return bool(groups or self._batches)

    def _sent(self, batch: Batch) -> bool:
        """Continue with a frame; return whether it is made and given to its viewers."""
        if not batch.making.go_on():
            return False
        for seat, number in batch.seats:
            seat.waits = False
            if batch.making.frame is not None:
                frame = seat.viewer.next_frame
                seat.viewer.show(batch.making.frame.packed(frame, number, self._share))
        return True

    def _drop_frames(self) -> None:
        """Forget frames that are on their way, after one of them has failed."""
        for batch in self._batches:
            for seat, _ in batch.seats:
                seat.waits = False
        self._batches = []

    def _present_share(self) -> int:
        """Percent of the speed of a copy that steps reach, or 255."""
        found = kernels.kept_bandwidth(self.live.simulation.device)
        if found is None or not self._speed:
            return 255
        moved = self.live.simulation.bytes_per_step() * self._speed
        return min(200, round(100 * moved / found.bytes_per_second))

    def _tell_status(self, changed: bool) -> None:
        now = time.monotonic()
        if not self._seats or (now < self._status_due and not changed):
            return
        simulation, transport = self.live.simulation, self._transport
        running = transport.playing or transport.goal is not None
        self._speed = self._rate.at(now) if running else 0.0
        values = self._observed(now)
        # Not for every frame: it is read from a file.
        self._share = share = self._present_share()
        status = {
            "type": "status",
            "step": simulation.step_count,
            "time": simulation.time,
            "playing": running,
            "rate": transport.rate,
            "steps_per_second": self._speed,
            "mlups": self._speed * math.prod(simulation.size) / 1e6,
            "share": None if share == 255 else share / 100,
            "parameters": simulation.model.parameters,
            "seed": self.live.seed,
            "viewers": len(self._seats),
            "observables": values or {},
            "drift": self._drift(values or {}),
            "recording": self.live.recording,
            "form": simulation.form_name,
            "command": self.live.command(),
            "link": self.live.link(),
            "goal": transport.goal,
            "painted": self.live.painted,
        }
        self._tell_all(status)

    def _observed(self, now: float) -> dict[str, float] | None:
        """The observables, unless they are not due."""
        if now < self._status_due:
            return None
        try:
            values, cost = self.live.observe()
        except CommunicationError:
            raise
        except Exception as problem:  # noqa: BLE001  the run and its pictures continue without
            self._status_due = now + _STATUS
            self._report_once(f"the observables cannot be computed: {problem}")
            return None
        on_gpu = self.live.simulation.device.type == "cuda"
        share = _OBSERVING_ON_GPU if on_gpu else _OBSERVING
        self._status_due = now + max(_STATUS, cost / share)
        self._first = self._first or values
        step = self.live.simulation.step_count
        if self._history and self._history[-1][0] == step:
            self._history.pop()
        self._history.append((step, values))
        return values

    def _drift(self, values: dict[str, float]) -> dict[str, float]:
        found: dict[str, float] = {}
        for name in self.live.simulation.model.conserved:
            if name in values and name in self._first:
                first = self._first[name]
                found[name] = (values[name] - first) / (abs(first) or 1.0)
        return found

    def _tell_others(self, viewer: Viewer, fields: Any) -> None:
        stroke = {k: fields[k] for k in ("points", "radius", "brush")}
        for seat in list(self._seats.values()):
            if seat.viewer is not viewer:
                seat.viewer.tell({"type": "stroke", "viewer": viewer.number, **stroke})

    def _tell_all(self, message: dict[str, Any]) -> None:
        for seat in list(self._seats.values()):
            seat.viewer.tell(message)
