"""`events.jsonl`: what happened in a run, one JSON object a line."""

import json
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hotgrid.errors import DamagedError, StoreError

EVENTS = "events.jsonl"
"""The name of the log in the folder of a run."""
_TOGETHER = 0.5


class EventLog:
    """A log that can be cut back to where a checkpoint was saved.

    Lines are written together, after half a second at the latest when the next one comes.
    A killed process loses only lines that come after its last checkpoint.

    Args:
        path: The file; created if needed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: list[str] = []
        self._written = time.monotonic()
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._file = os.open(path, flags, 0o666)
        except OSError as problem:
            raise StoreError(f"cannot write `{path}`: {problem.strerror}") from problem

    def write(self, event: str, step: int, **facts: Any) -> None:
        """Add a line. Numbers that are not finite become null."""
        line = json.dumps(_plain({"event": event, "step": step, **facts}), allow_nan=False)
        self._lines.append(line + "\n")
        if event != "train" or time.monotonic() - self._written > _TOGETHER:
            self.flush()

    def flush(self) -> None:
        """Hand all lines to the system."""
        lines, self._lines = self._lines, []
        self._written = time.monotonic()
        data = "".join(lines).encode()
        try:
            # A file system that is nearly full takes a part, and says so with the rest.
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as problem:
            raise StoreError(f"cannot write `{self._path}`: {problem.strerror}") from problem

    def mark(self) -> int:
        """How many bytes there are, all of them on the disk."""
        self.flush()
        os.fsync(self._file)
        return os.fstat(self._file).st_size

    def cut(self, mark: int) -> bool:
        """Drop everything after a mark; return whether everything before it exists."""
        self.flush()
        size = os.fstat(self._file).st_size
        if size < mark:
            # The next line must follow a good one.
            good = 0
            for line in os.pread(self._file, size, 0).splitlines(keepends=True):
                if not line.endswith(b"\n") or _event(line) is None:
                    break
                good += len(line)
            os.ftruncate(self._file, good)
            return False
        os.ftruncate(self._file, mark)
        return True

    def close(self) -> None:
        """Write the remaining lines, and close the file."""
        self.flush()
        os.close(self._file)


def read_events(folder: str | Path) -> list[dict[str, Any]]:
    r"""Return the events of a run, in order; a last line that is not complete is left out.

    Args:
        folder: The folder of the run.

    Raises:
        StoreError: There is no run in the folder.
        DamagedError: A line is not an event.

    Example:
        >>> log = '{"event": "start", "step": 0}' + chr(10) + '{"ev'
        >>> _ = Path("events.jsonl").write_text(log)
        >>> read_events(".")
        [{'event': 'start', 'step': 0}]
    """
    path = Path(folder) / EVENTS
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        inside = sorted(each.parent.name for each in path.parent.glob(f"*/{EVENTS}"))
        runs = f"; it has the runs {', '.join(inside[:5])}" if inside else ""
        raise StoreError(
            f"there is no training run in `{folder}`: {EVENTS} cannot be read "
            f"({problem.strerror}){runs}"
        ) from None
    except UnicodeDecodeError:
        raise DamagedError(f"`{path}` is not a log of events") from None
    found: list[dict[str, Any]] = []
    *lines, _ = text.split("\n")
    for number, line in enumerate(lines, 1):
        event = _event(line)
        if event is None:
            raise DamagedError(
                f"`{path}`, line {number}, is not an event; to continue the run without its "
                "curves so far, delete the file"
            )
        found.append(event)
    return found


def _event(line: str | bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
        if isinstance(event["event"], str) and type(event["step"]) is int:
            return event
    except (ValueError, KeyError, TypeError):
        pass
    return None


def curves(events: "list[dict[str, Any]]") -> dict[str, list[tuple[int, float]]]:
    """The values over steps, by name; those that are not numbers are left out."""
    found: dict[str, list[tuple[int, float]]] = {}
    for event in events:
        values = event.get("values")
        for name, value in values.items() if isinstance(values, dict) else ():
            if isinstance(value, int | float) and not isinstance(value, bool):
                found.setdefault(name, []).append((event["step"], float(value)))
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
