"""The live view of a run: plots on a terminal, plain lines in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ._events import curves
from ._plot import COLOURS, short, text_plot

# Drawing takes some milliseconds: seldom enough to cost nothing.
_DRAW_EVERY = 1.0
_LINE_EVERY = 2.0
_MOST_PLOTS = 3


class Dashboard:
    """The progress of a run, shown on standard error.

    Args:
        steps: How many steps the run makes in all.
        show: Whether to show anything.
    """

    def __init__(self, steps: int, show: bool) -> None:
        self._steps, self._show = steps, show
        # The name of a group may be a selector, such as `//Param[@rank=1]`.
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._curves: dict[str, list[tuple[int, float]]] = {}
        self._last: dict[str, float | None] = {}
        self._step = self._first = 0
        self._began = time.monotonic()
        self._next = 0.0
        self._live: Live | None = None

    @staticmethod
    def on_terminal() -> bool:
        """Whether standard error is a terminal."""
        return sys.stderr is not None and sys.stderr.isatty()

    def recall(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Show what a resumed run has logged before."""
        self._curves = curves(list(map(dict, events)))
        self._step = self._first = max((each["step"] for each in events), default=0)

    def show(self, step: int, values: Mapping[str, float | None]) -> None:
        """Take new values; draw if it is time."""
        if not self._show:
            return
        self._step = step
        self._last |= values
        for name, value in values.items():
            if value is not None:
                self._curves.setdefault(name, []).append((step, value))
        now = time.monotonic()
        evaluated = not any(name.startswith("train/") for name in values)
        if self._live is not None:
            if now >= self._next:
                self._next = now + _DRAW_EVERY
                self._live.update(self._drawn(), refresh=True)
        elif now >= self._next or evaluated:
            self._next = now + _LINE_EVERY
            self._console.print(self._line(values), soft_wrap=True, markup=False)

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        if self._show and self.on_terminal():
            self._live = Live(console=self._console, auto_refresh=False, transient=False)
            self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.update(self._drawn(), refresh=True)
            self._live.__exit__(kind, problem, trace)

    def _left(self) -> str:
        done = self._step - self._first
        if not done or self._step >= self._steps:
            return ""
        seconds = (time.monotonic() - self._began) / done * (self._steps - self._step)
        minutes, seconds = divmod(round(seconds), 60)
        hours, minutes = divmod(minutes, 60)
        clock = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
        return f"{clock} left"

    def _line(self, values: Mapping[str, float | None]) -> str:
        shown = [
            f"{name} {short(value)}"
            for name, value in values.items()
            if "gradient norm" not in name
        ]
        return "  ".join(filter(None, [f"step {self._step:,} of {self._steps:,}",
                                       *shown, self._left()]))  # fmt: skip

    def _drawn(self) -> Group:
        width = min(self._console.width, 110)
        share = self._step / self._steps
        bar = 30
        head = Text.assemble(
            ("━" * round(bar * share), "bright_blue"),
            ("━" * (bar - round(bar * share)), "dim"),
            f"  step {self._step:,} of {self._steps:,}  {self._left()}",
        )
        parts: list[Any] = [head]
        height = max(4, min(9, (self._console.height - 8) // (_MOST_PLOTS + 1)))
        for title, series in list(charts(self._curves).items())[:_MOST_PLOTS]:
            legend = Text(f"\n{title}  ", "bold")
            for number, name in enumerate(series):
                legend.append(f"● {name}  ", COLOURS[number % len(COLOURS)])
            parts += [legend, text_plot(series, width=width, height=height)]
        table = Table.grid(padding=(0, 3))
        cells = [f"{name}  {short(value)}" for name, value in self._last.items()]
        for at in range(0, len(cells), 3):
            table.add_row(*cells[at : at + 3])
        return Group(*parts, Text(), table)


def charts(
    found: Mapping[str, list[tuple[int, float]]],
) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """Curves by chart; those of the same name in training and evaluation share one."""
    charts: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for name, points in found.items():
        split, _, metric = name.partition("/")
        title, _, group = metric.partition(", ")
        charts.setdefault(title, {})[group or split] = points
    order = {"loss": 0, "accuracy": 1, "bits per byte": 1}
    return dict(sorted(charts.items(), key=lambda item: order.get(item[0], 2)))
