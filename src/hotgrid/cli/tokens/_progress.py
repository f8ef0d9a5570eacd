"""A bar on the terminal for work that takes long."""

import sys
import time
from types import TracebackType
from typing import Any, Self

from hotgrid.cli._terminal import Terminal

_PATIENCE_SECONDS = 0.7


class Progress:
    """A bar on standard error, from when work has taken a while; nothing without a terminal.

    Args:
        what: A word for the work.
        total: How much there is to do in all; 0 if unknown.
        shown: False where the work itself writes on the terminal.
    """

    def __init__(self, what: str, total: int, *, shown: bool = True) -> None:
        self._what, self._total = what, total
        self._shown = shown and sys.stderr is not None and sys.stderr.isatty()
        self._begin = time.monotonic()
        self._done = 0
        self._bar: Any = None

    def advance(self, amount: int) -> None:
        """Report that so much more is done."""
        self._done += amount
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._done)
        elif self._shown and time.monotonic() - self._begin > _PATIENCE_SECONDS:
            self._start()

    def _start(self) -> None:
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress as Bar,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Terminal(stderr=True),
            transient=True,
        )
        self._bar.add_task(self._what, total=self._total or None, completed=self._done)
        self._bar.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
