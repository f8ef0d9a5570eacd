"""The folder of a training run: checkpoints, events, the report."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from hotgrid import cluster
from hotgrid.cluster import Communicator
from hotgrid.config import logger
from hotgrid.errors import ArgumentError, CommunicationError, StoreError, UnstableError
from hotgrid.files import whole_file
from hotgrid.store import Checkpoints, RunFolder
from hotgrid.train._report import EVENTS, REPORT, EventLog, read_events, write_report

from ._guard import LossGuard
from ._rollback import Rollback
from ._settings import Saving

if TYPE_CHECKING:
    from torch import Tensor

    from hotgrid.store import Shard

# The report of a continuing run is drawn at most once in so many seconds.
_REPORT_EVERY = 20.0
# The value of a step that was not evaluated: worse than any other.
_WORST = {"lowest": sys.float_info.max, "highest": -sys.float_info.max}


class SavedState(Protocol):
    """The tensors of a run, as a folder needs them."""

    def tensors(self) -> dict[str, Tensor | Shard]:
        """The tensors to save, by name."""
        ...

    def slots(self) -> dict[str, Any]:
        """Notes about the state of the optimizer, saved with it."""
        ...

    def random_names(self) -> list[str]:
        """The names of the generators whose state is saved."""
        ...

    def load(self, checkpoints: Checkpoints) -> tuple[int, dict[str, Any]]:
        """Go back to the newest checkpoint that is good; return its step and its notes."""
        ...


class TrainingFolder:
    """The run folder of a trainer; without a folder nothing is written.

    As a context it holds the lock of the folder, and waits at the end for checkpoints that
    are still being written. All ranks make the same calls.
    """

    def __init__(
        self,
        folder: str | Path | None,
        ranks: Communicator,
        saving: Saving,
        state: SavedState,
    ) -> None:
        if folder is not None and not (isinstance(folder, Path) or folder):
            raise ArgumentError(f"`folder` is {folder!r}; give the path of a folder")
        self._ranks, self._saving, self._state = ranks, saving, state
        self._better: Literal["lowest", "highest"] = saving.better or "lowest"
        self._run = None if folder is None else RunFolder(folder, group=ranks)
        self._checkpoints: Checkpoints | None = None
        self._events: EventLog | None = None
        self._best: float | None = None
        self._newest: int | None = None
        self._reported = time.monotonic()
        self._rollbacks = 0
        self._backs: list[dict[str, Any]] = []

    @property
    def used(self) -> bool:
        """Whether there is a folder."""
        return self._run is not None

    def begin(
        self,
        asked: Mapping[str, str],
        options: Mapping[str, Any],
        resume: bool | str,
        files: Mapping[str, bytes | None],
    ) -> tuple[int, dict[str, Any]] | None:
        """Claim the folder for this run; return the newest checkpoint if it continues."""
        if resume not in (True, False, "auto"):
            raise ArgumentError(f"`resume` is {resume!r}; expected True, False or 'auto'")
        if self._run is None:
            if resume is True:
                raise StoreError("`resume` needs a `folder`, that of the run to continue")
            return None
        for name, contents in files.items():
            own = name in (EVENTS, REPORT, "run.toml", "checkpoints") or name.startswith(".")
            plain = name and Path(name).name == name and isinstance(contents, bytes | None)
            if own or not plain:
                raise ArgumentError(
                    f"`files` has {name!r} with {type(contents).__name__}; expected bytes by a "
                    "plain name that no other file of a run has"
                )
        there = (self._run.path / "run.toml").exists()
        if resume == "auto":
            resume = bool(self._ranks.gather_json(there)[0])
        self._run.begin(
            asked,
            files=[EVENTS, REPORT, *files],
            options=options,
            job=cluster.job(),
            resume=resume is True,
        )
        for name, contents in {} if self._ranks.rank else files.items():
            if contents is not None and not (self._run.path / name).exists():
                with whole_file(self._run.path / name) as aside:
                    aside.write_bytes(contents)
        rule = self._saving
        self._checkpoints = Checkpoints(
            self._run.checkpoints,
            keep_last=rule.last,
            keep_every=rule.keep_every,
            keep_best=rule.best,
            best=self._better,
            # Writing runs in a thread, which must not interfere with training.
            group=self._ranks.beside() if self._ranks.size > 1 else None,
        )
        if not self._run.goes_on:
            return None
        steps = self._ranks.gather_json(self._checkpoints.steps())[0]
        if not steps:
            self._tell("there is no checkpoint; the run starts again")
            return None
        step, extra = self._state.load(self._checkpoints)
        if not (self._run.path / "run.toml").exists():
            raise StoreError(
                f"`{self._run.path / 'run.toml'}` is missing, which describes the run of the "
                "checkpoints next to it: restore it, or move the checkpoints out of the folder"
            )
        if extra.get("run") != self._run.id:
            raise StoreError(
                f"`{self._run.checkpoints}` contains checkpoints of another run: move them "
                "out of the folder"
            )
        self._recall(step, extra)
        self._tell(f"continues from step {step}")
        return step, extra

    def open_events(
        self, saved: tuple[int, dict[str, Any]] | None, facts: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Open the log, cut to the checkpoint; return the events until there."""
        if self._run is None or self._ranks.rank:
            return []
        self._events = EventLog(self._run.path / EVENTS)
        if not self._events.cut(0 if saved is None else saved[1]["events"]):
            self._tell(f"a part of `{EVENTS}` is lost; the run continues, its report has a gap")
        if saved is None:
            self._events.write("start", 0, **facts, time=_now())
        else:
            known = {name: facts[name] for name in ("ranks", "steps", "better")}
            self._events.write("resume", saved[0], **known, time=_now())
        return read_events(self._run.path)

    def write(self, event: str, step: int, **facts: Any) -> None:
        """Add an event."""
        if self._events is not None:
            self._events.write(event, step, **facts)

    def due(self, step: int, now: Mapping[str, float | None] | None = None) -> bool:
        """Whether to save a step: by its number, or because its value is the best so far."""
        if self._run is None:
            return False
        return step % self._saving.every == 0 or self._improves(now or {})

    def save(
        self,
        step: int,
        extra: Mapping[str, Any],
        now: Mapping[str, float | None],
        *,
        last: bool,
    ) -> None:
        """Save a step that is not saved yet, in the background unless it is the last."""
        if self._run is None or self._checkpoints is None:
            return
        if step == self._newest:
            self._checkpoints.wait()
            return
        self._run.expect_there()
        if self._improves(now):
            self._best = now[str(self._saving.best)]
        notes = {
            "run": self._run.id,
            "best so far": self._best,
            "best of": self._best_of,
            "rollbacks": self._rollbacks,
            "optimizer": self._state.slots(),
            "random": self._state.random_names(),
            "events": self._events.mark() if self._events else 0,
        }
        if self._saving.best is not None:
            value = now.get(self._saving.best)
            notes[self._saving.best] = _WORST[self._better] if value is None else value
        self._checkpoints.save(
            step,
            self._state.tensors(),
            extra={**extra, **notes},
            asynchronous=self._saving.asynchronous and not last,
        )
        self._newest = step
        self._backs = []
        if time.monotonic() - self._reported > _REPORT_EVERY:
            self.report()

    def go_back(
        self, back: Rollback, guard: LossGuard, skipped: set[int]
    ) -> tuple[int, dict[str, Any]]:
        """Load the last checkpoint, to leave out the batches of a fault.

        Raises:
            UnstableError: The run must end instead.
        """
        fault = back.fault
        self.write("fault", fault.step, text=str(fault), batches=list(fault.positions))
        enough = self._rollbacks >= guard.most
        if not guard.rollback or enough or self._checkpoints is None or self._run is None:
            way = "lower the learning rate, clip gradients, or look at this batch"
            if enough and guard.rollback:
                way += f"; {guard.most} batches were left out already (`LossGuard(most=...)`)"
            elif not guard.rollback:
                way += (
                    "; `LossGuard(rollback=True)` goes back to the last checkpoint without it"
                )
            raise UnstableError(f"{fault}. {way[0].upper()}{way[1:]}", step=fault.step,
                                cause=way) from None  # fmt: skip
        count = self._rollbacks + 1
        step, extra = self._state.load(self._checkpoints)
        self._recall(step, extra)
        # Not that of the checkpoint: a second fault may come before the next one.
        self._rollbacks = count
        extra["skipped"] = sorted({*extra["skipped"], *skipped, *fault.positions})
        self._backs.append({"text": str(fault), "batches": list(fault.positions)})
        if self._events is not None:
            self._events.cut(extra["events"])
            for each in self._backs:
                self._events.write("rollback", step, **each)
        self._tell(f"{fault}; back to step {step}, without it")
        return step, extra

    @property
    def _best_of(self) -> list[str | None]:
        """What the best so far is the best of: a resumed run may watch another value."""
        return [self._saving.best, self._better]

    def report(self) -> None:
        """Write the report."""
        self._reported = time.monotonic()
        if self._run is not None and self._ranks.rank == 0:
            write_report(self._run.path)

    def _recall(self, step: int, extra: Mapping[str, Any]) -> None:
        self._newest = step
        # Earlier versions did not say of which value.
        same = extra.get("best of", self._best_of) == self._best_of
        self._best = extra["best so far"] if same else None
        self._rollbacks = extra["rollbacks"]

    def _improves(self, now: Mapping[str, float | None]) -> bool:
        name = self._saving.best
        value = None if name is None else now.get(name)
        if value is None or math.isnan(value):
            return False
        if self._best is None:
            return True
        return value < self._best if self._better == "lowest" else value > self._best

    def _tell(self, text: str) -> None:
        if self._ranks.rank == 0:
            logger("train").warning("%s", text)

    def __enter__(self) -> Self:
        self._end = contextlib.ExitStack()
        if self._run is not None:
            self._end.enter_context(self._run)
            self._end.push(self._wait)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end.__exit__(kind, problem, trace)

    def _wait(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[False]:
        events, self._events = self._events, None
        if events is not None:
            events.close()
        # Do not wait for work that waits for a lost rank.
        if self._checkpoints is not None and not isinstance(problem, CommunicationError):
            self._checkpoints.__exit__(kind, problem, trace)
        return False


def _now() -> str:
    import datetime

    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
