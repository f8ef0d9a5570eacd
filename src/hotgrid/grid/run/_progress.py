"""A progress bar with the speed of a run; silent without a terminal."""

import math
import sys
import time
from types import TracebackType
from typing import Any

from hotgrid.grid.forms import GridState


class Progress:
    """Shows steps, speed and share of the hardware limit during a run.

    Arguments:
        simulation: What runs.
        goal: Steps to make, or None when that is open.
        show: True shows it, False does not; None shows it on a terminal.
        fresh: Whether no step was made before; the first one compiles.
    """

    def __init__(
        self, simulation: GridState, goal: int | None, show: bool | None, *, fresh: bool
    ) -> None:
        self._simulation = simulation
        self._fresh = fresh
        self._goal = goal
        self._show = sys.stderr.isatty() if show is None else show
        self._bar: Any = None
        self._task: Any = None
        self._first: tuple[int, float] | None = None
        self._limit: float | None = None

    def __enter__(self) -> "Progress":
        if self._show:
            self._open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, made: int) -> None:
        """Report how many steps have been made."""
        if self._bar is None:
            return
        now = time.perf_counter()
        if self._first is None:
            self._first = (made, now)
        steps, seconds = made - self._first[0], now - self._first[1]
        rate = steps / seconds if seconds > 0 else 0.0
        self._bar.update(self._task, completed=made, speed=self._speed(rate))

    def _open(self) -> None:
        from hotgrid.kernels import kept_bandwidth

        try:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress as Bar,
                TextColumn,
                TimeRemainingColumn,
            )
        except ImportError:  # a machine that has only torch still runs
            return
        # Measuring would take longer than many runs; a long run does it at its end.
        known = kept_bandwidth(self._simulation.device)
        self._limit = known and known.bytes_per_second
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        name = type(self._simulation.model).__name__
        simulation = self._simulation
        compiling = simulation.compiled and self._fresh
        self._task = self._bar.add_task(
            name, total=self._goal, speed="compiling" if compiling else ""
        )
        self._bar.start()

    def _speed(self, rate: float) -> str:
        if rate == 0:
            return ""
        simulation = self._simulation
        moved = rate * simulation.bytes_per_step()
        cells = math.prod(simulation.size) * math.prod(simulation._setting.batch)
        speed = f"{rate:,.0f} steps/s  {rate * cells / 1e6:,.0f} MLUPS  {moved / 1e9:,.1f} GB/s"
        if self._limit is None:
            return speed
        return f"{speed} = {moved / self._limit:.0%} of copy"
