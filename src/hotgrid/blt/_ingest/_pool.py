"""Units of work in this process, or in worker processes that may crash or hang."""

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from hotgrid.errors import ArgumentError, DamagedError, StoreError
from hotgrid.tensors._torch_private import one_thread

from ._inputs._units import Unit
from ._settings import IngestSettings
from ._work import StoppedError, Worker

_KINDS = {kind.__name__: kind for kind in (ArgumentError, DamagedError, StoreError)}
_MOST_CRASHES = 100
"""Crashes of one unit after which it is given up."""

Job = tuple[int, Unit]
News = Callable[[int], None]
"""Called with the bytes of every document that is begun."""
Stop = Callable[[], bool]


def raise_told(kind: str, text: str) -> None:
    """Raise what a worker has told, if it told anything."""
    if kind:
        raise _KINDS.get(kind, StoreError)(text)


class InProcess:
    """Does units one after another in this process."""

    def __init__(self, folder: Path, settings: IngestSettings) -> None:
        self._worker = Worker(folder, settings)
        self._most, self._kept = settings.limit, 0

    def run(self, jobs: deque[Job], until: float, news: News, stop: Stop) -> int:
        """Do units until there are none or enough, the time is up, or a stop.

        Returns:
            The documents that they gave.
        """

        def begin(position: int, size: int) -> None:
            if stop():
                raise StoppedError
            news(size)

        before = self._kept
        # Sums over several threads may be rounded in another order.
        with one_thread(), contextlib.suppress(StoppedError):
            while jobs and not stop() and time.monotonic() < until:
                if _is_enough(self._kept, self._most):
                    break
                number, unit = jobs[0]
                self._kept += self._worker.work(number, unit, begin=begin)
                jobs.popleft()
        return self._kept - before

    def close(self) -> None:
        """Nothing is left."""


def _is_enough(kept: int, most: int | None) -> bool:
    return most is not None and kept >= most


@dataclass
class _Hand:
    """A worker process, the unit it has, and what it said last."""

    process: subprocess.Popen[bytes]
    given: IO[bytes]
    said: IO[bytes]
    job: Job | None = None
    at: int = -1
    ready: bool = False
    heard: float = field(default_factory=time.monotonic)
    rest: bytes = b""


class Processes:
    """Does units in worker processes.

    If one crashes, or says nothing for too long, the document that it had begun is left out
    and the rest of the unit is repeated. If it was reading the next one, the unit ends there.

    Args:
        folder: The folder of the corpus.
        settings: The settings of the ingest.
        count: How many processes.
        timeout: Seconds that a document may take.
        inherited: Descriptors that workers keep open: the lock of the folder.
    """

    def __init__(
        self,
        folder: Path,
        settings: IngestSettings,
        count: int,
        timeout: float,
        inherited: Sequence[int] = (),
    ) -> None:
        self._first = {"folder": str(folder.resolve()), "settings": settings.to_table()}
        self._timeout, self._inherited = timeout, tuple(inherited)
        self._most, self._kept, self._last = settings.limit, 0, -1
        self._skipped: dict[int, dict[int, str]] = {}
        self._cuts: dict[int, tuple[int, str]] = {}
        self._crashes: dict[int, int] = {}
        self._selector = selectors.DefaultSelector()
        self._hands = [self._hired() for _ in range(count)]

    def run(self, jobs: deque[Job], until: float, news: News, stop: Stop) -> int:
        """Do units until there are none or enough, the time is up, or a stop.

        Returns:
            The documents that they gave.
        """
        before = self._kept
        while True:
            leaving = stop()
            waiting = not leaving and time.monotonic() < until
            for number, hand in enumerate(self._hands):
                if hand.job is None and waiting and self._is_next(jobs):
                    self._give(number, jobs.popleft())
            busy = [each for each in self._hands if each.job is not None]
            if not busy or (leaving and self._abandon(jobs)):
                return self._kept - before
            for key, _ in self._selector.select(0.2):
                self._kept += self._hear(key.data, jobs, news)
            for number, hand in reversed(list(enumerate(self._hands))):
                # Loading a model takes as long as it takes.
                silent = time.monotonic() - hand.heard
                if hand.job is not None and hand.ready and silent > self._timeout:
                    hand.process.kill()
                    why = f"it took longer than {self._timeout:g} s, the limit (--timeout)"
                    self._replace(number, jobs, why)

    def _is_next(self, jobs: deque[Job]) -> bool:
        """Whether there is a unit to do: of those before the last one, none may be missing."""
        if not jobs:
            return False
        return jobs[0][0] <= self._last or not _is_enough(self._kept, self._most)

    def close(self) -> None:
        """End all processes."""
        for hand in self._hands:
            hand.process.kill()
            self._dismiss(hand)
        self._selector.close()

    def _dismiss(self, hand: _Hand) -> None:
        self._selector.unregister(hand.said)
        hand.process.wait()
        with contextlib.suppress(BrokenPipeError):
            hand.given.close()
        hand.said.close()

    def _abandon(self, jobs: deque[Job]) -> bool:
        """Leave units unfinished: what documents they have written is found again."""
        for hand in self._hands:
            if hand.job is not None:
                jobs.appendleft(hand.job)
        return True

    def _hired(self) -> _Hand:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        # -P: a file in the working folder that is called like a module must not hide it.
        command = [sys.executable, "-P", "-m", "hotgrid.blt._ingest._worker"]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            pass_fds=self._inherited,
        )
        given, said = process.stdin, process.stdout
        assert given is not None  # noqa: S101 - asked for above
        assert said is not None  # noqa: S101
        hand = _Hand(process, given, said)
        self._selector.register(said, selectors.EVENT_READ, hand)
        self._say(hand, self._first)
        return hand

    def _give(self, index: int, job: Job) -> None:
        hand = self._hands[index]
        number, unit = job
        self._last = max(self._last, number)
        hand.job, hand.at, hand.heard = job, -1, time.monotonic()
        what = {"number": number, "unit": unit.to_table(), "cut": self._cuts.get(number)}
        self._say(hand, {**what, "skipped": self._skipped.get(number, {})})

    def _say(self, hand: _Hand, what: dict[str, Any]) -> None:
        # If it has ended, its output says so too.
        with contextlib.suppress(BrokenPipeError):
            hand.given.write(json.dumps(what).encode() + b"\n")
            hand.given.flush()

    def _hear(self, hand: _Hand, jobs: deque[Job], news: News) -> int:
        data = os.read(hand.said.fileno(), 1 << 16)
        if not data:
            code = hand.process.wait()
            why = f"the decoder crashed ({'signal ' if code < 0 else 'exit '}{abs(code)})"
            self._replace(self._hands.index(hand), jobs, why)
            return 0
        *lines, hand.rest = (hand.rest + data).split(b"\n")
        kept = 0
        for line in lines:
            hand.heard = time.monotonic()
            said = json.loads(line)
            if "failed" in said:
                raise_told(*said["failed"])
            if "ready" in said:
                hand.ready = True
            elif "done" in said:
                kept += said["kept"]
                hand.job = None
            else:
                hand.at = said["at"]
                news(said["size"])
        return kept

    def _replace(self, index: int, jobs: deque[Job], why: str) -> None:
        """Put a new process in the place of one that is gone, and its unit back."""
        hand = self._hands[index]
        del self._hands[index]
        self._dismiss(hand)
        if hand.job is not None:
            number = hand.job[0]
            self._crashes[number] = self._crashes.get(number, 0) + 1
            if not hand.ready or self._crashes[number] > _MOST_CRASHES:
                raise StoreError(f"a worker ended while it read `{hand.job[1].name}`: {why}")
            skipped = self._skipped.setdefault(number, {})
            if hand.at < 0 or hand.at in skipped:
                # It was not this document: reading the one after it failed.
                skipped.pop(hand.at, None)
                self._cuts[number] = (hand.at + 1, why)
            else:
                skipped[hand.at] = why
            jobs.appendleft(hand.job)
        self._hands.append(self._hired())
