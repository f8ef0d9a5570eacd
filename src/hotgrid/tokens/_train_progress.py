"""A bar for training; silent when nobody looks."""

import sys
from types import TracebackType
from typing import Any


class TrainingProgress:
    """Shows how much text was counted, then how many tokens were made.

    Args:
        show: True shows it, False does not; None shows it on a terminal.
    """

    def __init__(self, show: bool | None) -> None:
        self._show = sys.stderr.isatty() if show is None else show
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> "TrainingProgress":
        if self._show:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                Progress,
                TextColumn,
                TimeElapsedColumn,
            )

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[done]}"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
            )
            self._task = self._bar.add_task("counting words", total=None, done="")
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def counted(self, size: int, words: int) -> None:
        """Say how many bytes were read and how many different words are in them."""
        if self._bar is not None:
            self._bar.update(self._task, done=f"{size / 1e6:,.0f} MB, {words:,} words")

    def made(self, tokens: int, wanted: int) -> None:
        """Say how many tokens there are."""
        if self._bar is not None:
            self._bar.update(
                self._task,
                description="making tokens",
                completed=tokens,
                total=wanted,
                done=f"{tokens:,} of {wanted:,}",
            )
