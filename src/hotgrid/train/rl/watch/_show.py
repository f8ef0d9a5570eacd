"""`Show`: a thread in which the best policy of a run acts, for any number of pages."""

import io
import logging
import math
import struct
import threading
import time
from pathlib import Path
from typing import Any

from PIL import Image

from hotgrid.errors import HotgridError, StoreError
from hotgrid.store import Checkpoints
from hotgrid.train._report import read_events
from hotgrid.train.rl._environments import Environment
from hotgrid.train.rl._watch import Player, load_policy
from hotgrid.web import Check, Viewer, number_in, one_of, parse_message, truth, whole_in

_LOG = logging.getLogger("hotgrid.rl")
KINDS: dict[str, dict[str, Check]] = {
    "play": {"on": truth},
    "step": {},
    "restart": {},
    "speed": {"factor": number_in(0.1, 100)},
    "actions": {"by": one_of("policy", "chance")},
    "drawn": {"frame": whole_in(1, 2**53)},
}
"""The messages of a page."""
_LOOK = 2.0
_STATUS = 0.1


class Show:
    """Acts at the pace of the environment and shows it to pages.

    A run that is still training is followed: when it has saved a better policy, that one
    acts from the next episode on.

    Args:
        folder: The folder of the run.
        environment: The environment of the run, if it is one of your own.
        playing: Whether it acts at once.
        seed: Random seed.

    Raises:
        StoreError: There is no checkpoint in the folder.
        DamagedError: It was not saved by an `RLTrainer`.
        ArgumentError: The environment is not known, or has no picture.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        environment: Environment | str | None = None,
        playing: bool = True,
        seed: int = 0,
    ) -> None:
        self._folder, self._environment = Path(folder), environment
        self.player = Player(load_policy(folder, environment=environment), seed)
        # The newest step that was looked at; a damaged one is not what is shown.
        self._looked: int | None = self.player.trained.step
        # Says so now if there is no picture.
        self._picture: bytes | None = self._encoded()
        self._last = self._picture
        self.playing, self.speed, self.by = playing, 1.0, "policy"
        self.curve = self._read_curve()
        self._viewers: list[Viewer] = []
        self._fresh: set[int] = set()
        self._lock, self._wake = threading.Lock(), threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="hotgrid-rl-watch", daemon=True)

    def start(self) -> None:
        """Begin to act."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._ended = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def join(self, viewer: Viewer) -> None:
        """Show it to one more page."""
        with self._lock:
            self._viewers.append(viewer)
            viewer.tell(self._hello())
            viewer.tell(self._status())
        self._offer()

    def leave(self, viewer: Viewer) -> None:
        """Forget a page."""
        with self._lock:
            self._viewers.remove(viewer)

    async def receive(self, viewer: Viewer, text: str | bytes) -> None:
        """Obey a message of a page.

        Raises:
            MessageError: It is not one of `KINDS`.
        """
        message = parse_message(text, KINDS)
        if message.type == "drawn":
            viewer.acknowledge(message.fields["frame"])
            if viewer.number not in self._fresh:
                self._offer()
            return
        with self._lock:
            self._obey(message.type, message.fields)
            self._tell(self._status())
        self._offer()
        if message.id is not None:
            viewer.tell({"type": "done", "id": message.id})
        self._wake.set()

    def _obey(self, kind: str, fields: Any) -> None:
        if kind == "play":
            self.playing = fields["on"]
        elif kind == "speed":
            self.speed = fields["factor"]
        elif kind == "actions":
            self.by = fields["by"]
        elif kind == "step":
            self.playing = False
            self._advance()
        else:
            self.player.restart()
            self._changed()

    def _run(self) -> None:
        rate = self.player.trained.environment.rate
        due = looked = told = time.monotonic()
        while not self._ended:
            now = time.monotonic()
            if now - looked > _LOOK:
                looked = now
                self._look()
            if not self.playing or not self._viewers:
                self._wake.wait(_LOOK)
                self._wake.clear()
                due = time.monotonic()
                continue
            if now < due:
                time.sleep(min(due - now, 0.05))
                continue
            # Steps that could not be taken in time are left out, not caught up with.
            due = max(due + 1 / (rate * self.speed), now - 0.1)
            with self._lock:
                self._advance()
                # Pages get the return of every episode when it ends, however short that is.
                if self.player.ended or now - told > _STATUS:
                    told = now
                    self._tell(self._status())
            self._offer()

    def _advance(self) -> None:
        try:
            self.player.step(at_random=self.by == "chance")
        except Exception as problem:  # noqa: BLE001  pages must show it
            self._failed(problem)
        else:
            self._changed()

    def _failed(self, problem: Exception) -> None:
        """Stop, show the last good picture, and say why."""
        _LOG.error("the environment failed", exc_info=problem)
        self.playing, self._picture = False, self._last
        reason = f"{type(problem).__name__}: {problem}"
        self._tell({"type": "error", "text": f"the environment failed with {reason}"})
        self._tell(self._status())

    def _changed(self) -> None:
        self._picture = None
        self._fresh = set()

    def _offer(self) -> None:
        """Give the picture to every page that can take one and has not had it."""
        with self._lock:
            for viewer in self._viewers:
                if viewer.ready and viewer.number not in self._fresh:
                    if self._picture is None:
                        self._draw()
                    self._fresh.add(viewer.number)
                    viewer.show(struct.pack("<I", viewer.next_frame) + self._last)

    def _draw(self) -> None:
        try:
            self._picture = self._last = self._encoded()
        except Exception as problem:  # noqa: BLE001  pages must show it
            self._failed(problem)

    def _encoded(self) -> bytes:
        made = io.BytesIO()
        picture = Image.fromarray(self.player.picture().numpy())
        picture.save(made, "PNG", compress_level=1)
        return made.getvalue()

    def _look(self) -> None:
        """Load the policy that a continuing run has saved since."""
        try:
            newest = Checkpoints(self._folder / "checkpoints").latest()
            if newest in (None, self._looked):
                return
            trained = load_policy(self._folder, environment=self._environment)
            curve, self._looked = self._read_curve(), newest
        except HotgridError:
            # It is being written or was deleted; the present policy stays.
            return
        with self._lock:
            self.player.trained, self.curve = trained, curve
            self._tell(self._hello())
            self._tell(self._status())

    def _read_curve(self) -> list[tuple[int, float]]:
        try:
            events = read_events(self._folder)
        except StoreError:
            return []
        found = [
            (event["step"], event.get("values", {}).get("valid/return"))
            for event in events
            if event["event"] == "evaluate"
        ]
        return [(step, value) for step, value in found if value is not None]

    def _tell(self, message: dict[str, Any]) -> None:
        for viewer in self._viewers:
            viewer.tell(message)

    def _hello(self) -> dict[str, Any]:
        trained = self.player.trained
        best = float(trained.returns.max())
        return {
            "type": "hello",
            "name": trained.environment.name,
            "summary": trained.environment.summary,
            "folder": self._folder.name,
            "trained": trained.step,
            # A run that was stopped before its first evaluation has none.
            "mean": best if math.isfinite(best) else None,
            "limit": trained.environment.limit,
            "curve": self.curve,
        }

    def _status(self) -> dict[str, Any]:
        player = self.player
        return {
            "type": "status",
            "playing": self.playing,
            "speed": self.speed,
            "by": self.by,
            "episode": player.episode,
            "step": player.steps,
            "total": player.total,
            "ended": player.ended,
        }
