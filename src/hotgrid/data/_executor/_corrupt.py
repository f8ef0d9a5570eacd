"""Damaged samples: named, counted, and too many of them an error."""

import dataclasses
import json
import threading
from dataclasses import dataclass
from pathlib import Path

from hotgrid.config import logger
from hotgrid.errors import ArgumentError, DamagedError

_log = logger("data")


@dataclass(frozen=True)
class CorruptSample:
    """A sample that could not be read or decoded.

    Attributes:
        index: Its number in the source.
        place: Where it is: the file, and where in it.
        operator: Which operator failed; empty if the source did.
        column: Which column was to be made.
        reason: What is wrong.
    """

    index: int
    place: str
    operator: str
    column: str
    reason: str

    def __str__(self) -> str:
        by = f"operator `{self.operator}`" if self.operator else "the source"
        return f"`{self.place}`: {by} cannot make column `{self.column}`: {self.reason}"


class CorruptError(Exception):
    """Raised in a worker for a sample that is damaged."""

    def __init__(self, sample: CorruptSample) -> None:
        super().__init__(str(sample))
        self.sample = sample


class Quarantine:
    """The damaged samples of a run, counted once each; in a file, where one is given."""

    def __init__(self, most: int, file: Path | None) -> None:
        self._most, self._file = most, file
        self._lock = threading.Lock()
        self._samples: dict[int, CorruptSample] = {}
        if file is not None and file.exists():
            try:
                for line in file.read_text("utf-8").splitlines():
                    found = CorruptSample(**json.loads(line))
                    self._samples[found.index] = found
            except (ValueError, TypeError) as problem:
                raise ArgumentError(
                    f"`quarantine` `{file}` is not a list of damaged samples: {problem}"
                ) from None

    @property
    def samples(self) -> tuple[CorruptSample, ...]:
        """The damaged samples found so far, by number."""
        with self._lock:
            return tuple(self._samples[index] for index in sorted(self._samples))

    def add(self, sample: CorruptSample) -> None:
        """Note one.

        Raises:
            DamagedError: There are more than allowed now.
        """
        with self._lock:
            known = sample.index in self._samples
            self._samples.setdefault(sample.index, sample)
            count = len(self._samples)
            if not known and self._file is not None:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                with self._file.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(dataclasses.asdict(sample)) + "\n")
        if not known:
            _log.warning("corrupt sample %d: %s", count, sample)
        if count > self._most:
            raise DamagedError(
                f"{count} samples are damaged, more than `most_corrupt` {self._most}; the last "
                f"is {sample}"
            )
