"""`Progress`: a bar on the terminal."""

import shutil
import sys
import time
from collections.abc import Callable
from typing import Self

_WIDTH = 24
_SECONDS_BETWEEN = 0.1
_BRIEF_AFTER_SECONDS = 0.7


class Progress:
    """A bar on standard error, inside a `with` block.

    Args:
        what: What is done, in a word or two.
        total: How much there is to do; None or 0 if that is not known.
        unit: What is counted.
        note: Given the amount done in a second, what to say behind the bar.
        show: True shows it, False does not; None shows it on a terminal.
        brief: The bar appears only when work has taken a while, and vanishes at the end.

    Example:
        >>> with Progress("reading", 3, unit="files", show=False) as bar:
        ...     for _ in range(3):
        ...         bar.advance(1)
    """

    def __init__(
        self,
        what: str,
        total: int | None = None,
        *,
        unit: str = "",
        note: Callable[[float], str] = lambda rate: "",
        show: bool | None = None,
        brief: bool = False,
    ) -> None:
        self._what, self._total, self._unit, self._note = what, total, unit, note
        self._terminal = show is not False and sys.stderr is not None and sys.stderr.isatty()
        self._show = self._terminal if show is None else show
        self._brief = brief
        self._done = 0
        self._drawn = False
        self._first: tuple[int, float] | None = None
        self._next = time.monotonic() + (_BRIEF_AFTER_SECONDS if brief else 0)

    def __enter__(self) -> Self:
        self._refresh()
        return self

    def __exit__(self, *problem: object) -> None:
        if self._show and not self._brief:
            self._write(self._line() + "\n")
        elif self._drawn:
            self._write("")

    def advance(self, amount: int) -> None:
        """Add to what is done."""
        self.update(self._done + amount)

    def update(self, done: int) -> None:
        """Set how much is done in all."""
        if self._show:
            self._done = done
            self._first = self._first or (done, time.monotonic())
            self._refresh()

    def _refresh(self) -> None:
        if self._show and self._terminal and time.monotonic() >= self._next:
            self._write(self._line())
            self._drawn = True
            self._next = time.monotonic() + _SECONDS_BETWEEN

    def _line(self) -> str:
        first, begin = self._first or (0, time.monotonic())
        seconds = time.monotonic() - begin
        rate = (self._done - first) / seconds if seconds else 0.0
        share = min(self._done / self._total, 1.0) if self._total else 0.0
        parts = [f"{self._what} [{'=' * round(_WIDTH * share):{_WIDTH}}] {self._done:,}"]
        if self._total:
            parts[0] += f" of {self._total:,}"
        if self._unit:
            parts[0] += f" {self._unit}"
        parts.append(self._note(rate))
        if self._total and rate and share < 1:
            left = round((self._total - self._done) / rate)
            parts.append(f"{left // 60}:{left % 60:02} left")
        return "  ".join(filter(None, parts))[: shutil.get_terminal_size().columns - 1]

    def _write(self, line: str) -> None:
        sys.stderr.write(f"\r\x1b[K{line}" if self._terminal else line)
        sys.stderr.flush()
