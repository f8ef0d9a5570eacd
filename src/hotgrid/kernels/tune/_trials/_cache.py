"""Winners of earlier processes: one file of JSON lines, appended under a lock.

A line belongs to a key and a stamp (see `_stamp`), so what another machine, another torch
or other candidates have found stays in the file and is not used here. Of several
lines for one key the last counts. A line that cannot be read is skipped. Lines are never
changed, and removed only by `clear`. A process parses each line once.
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import IO

from hotgrid.config import CachePlace, cache_folder, logger

from ._ranking import Ranking

VERSION = 1
"""The version of the line format; other versions live in other files."""

_PATIENCE = 10.0  # seconds to wait for another process that holds the lock


@dataclass(frozen=True)
class TuningCache:
    """The kept winners of every op.

    A cache that cannot be read or written is ignored: the log says so, once for each
    reason, and nothing stops.

    Attributes:
        path: The file; None keeps nothing.

    Example:
        >>> TuningCache(None).rankings()
        []
    """

    path: Path | None

    @classmethod
    def at(cls, place: CachePlace) -> "TuningCache":
        """Return the cache at a place that the settings name."""
        if place == "none":
            return cls(None)
        return cls(cache_folder(place, "autotune") / f"winners-{VERSION}.jsonl")

    def rankings(self) -> list[Ranking]:
        """Return every ranking that can be read, oldest first."""
        return _parsed(self._from_file() or b"", self.path)

    def find(self, key: str, stamp: str) -> Ranking | None:
        """Return the newest ranking of a key and stamp, or None."""
        text = self._from_file()
        if text is None or self.path is None:
            return None
        return _newest(text, self.path).get((key, stamp))

    def add(self, ranking: Ranking) -> None:
        """Append one ranking."""
        if self.path is None:
            return
        line = json.dumps({"version": VERSION, **ranking.plain()}).encode() + b"\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab+") as stream, _locked(stream, fcntl.LOCK_EX):
                # A process that was killed while writing has left half a line.
                size = stream.seek(0, os.SEEK_END)
                torn = size > 0 and os.pread(stream.fileno(), 1, size - 1) != b"\n"
                stream.write(b"\n" + line if torn else line)
                stream.flush()
        except OSError as error:
            self._unusable("write", error)

    def clear(self, op: str | None = None) -> int:
        """Forget every winner, also those of other machines; return how many there were.

        Args:
            op: Forget only those of this op.

        Raises:
            OSError: The file cannot be changed.
        """
        if self.path is None or not self.path.exists():
            return 0
        with self.path.open("rb+") as stream, _locked(stream, fcntl.LOCK_EX):
            lines = stream.read().splitlines(keepends=True)
            found = [_read(each) for each in lines]
            # A damaged line does not say which op it is for.
            gone = [r is not None and op in (None, r.op) for r in found]
            pairs = zip(lines, gone, strict=True)
            kept = [] if op is None else [line for line, going in pairs if not going]
            # Overwritten in place: processes that wait for the lock have this very file open.
            stream.seek(0)
            stream.writelines(kept)
            stream.truncate()
        return sum(gone)

    def _from_file(self) -> bytes | None:
        if self.path is None:
            return None
        try:
            with self.path.open("rb") as stream, _locked(stream, fcntl.LOCK_SH):
                return stream.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._unusable("read", error)
            return None

    def _unusable(self, what: str, error: OSError) -> None:
        _say_once(str(self.path), _PAST[what], error.strerror or str(error))


_PAST = {"read": "read", "write": "written"}


@cache
def _say_once(path: str, done: str, reason: str) -> None:
    logger("autotune").warning(
        "`%s` cannot be %s (%s), so winners are not kept there; "
        "`autotune.cache` sets another folder",
        path,
        done,
        reason,
    )


@lru_cache(maxsize=8)
def _newest(text: bytes, path: Path) -> dict[tuple[str, str], Ranking]:
    """Return the last ranking of each key and stamp in a file."""
    return {(each.key, each.stamp): each for each in _parsed(text, path)}


def _parsed(text: bytes, path: Path | None) -> list[Ranking]:
    """Return the rankings in some lines; damaged lines are logged."""
    read = [_read(line) for line in text.splitlines() if line.strip()]
    if damaged := read.count(None):
        _log_damaged(path, damaged)
    return [each for each in read if each is not None]


@cache
def _log_damaged(path: Path | None, count: int) -> None:
    logger("autotune").warning(
        "lines of `%s` are damaged and were skipped: %d; `hotgrid tune --clear` starts again",
        path,
        count,
    )


@lru_cache(maxsize=2**16)
def _read(line: bytes) -> Ranking | None:
    try:
        found = json.loads(line)
        return Ranking.from_plain(found) if found.pop("version") == VERSION else None
    # Deeply nested brackets and huge numbers raise the last ones.
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return None


@contextlib.contextmanager
def _locked(stream: IO[bytes], kind: int) -> Iterator[None]:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(stream, kind | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError(0, "another process holds its lock") from None
            time.sleep(0.002)
    try:
        yield
    finally:
        fcntl.flock(stream, fcntl.LOCK_UN)
