"""Observables over time: rows to read, to plot and to save."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from hotgrid.errors import ArgumentError
from hotgrid.files import whole_file
from hotgrid.grid.forms import GridState

from ._picture import need_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Row = dict[str, float]
"""A step, its time, and every observable then."""


class Observations:
    """The observables of a simulation over time; `every` can call it.

    Attributes:
        rows: One for each observation: `step`, `time` and every observable. For a batch there
            is one column for each run, such as `mass[0]`.

    Example:
        >>> from hotgrid.grid import pde
        >>> sim = Simulation(pde.Heat(), size=(8, 8), compiled=False)
        >>> seen = Observations()
        >>> sim.every(10, seen)
        >>> speed = sim.run(30)
        >>> [row["step"] for row in seen.rows]
        [10, 20, 30]
    """

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.rows: list[Row] = list(rows)

    def __call__(self, simulation: GridState) -> None:
        """Add a row for the present state, unless it has one."""
        if self.rows and self.rows[-1]["step"] == simulation.step_count:
            return
        row: Row = {"step": simulation.step_count, "time": simulation.time}
        for name, value in simulation.observe().items():
            if isinstance(value, list):
                row |= {f"{name}[{run}]": each for run, each in enumerate(value)}
            else:
                row[name] = value
        self.rows.append(row)

    def save(self, path: str | Path) -> Path:
        """Write the rows as CSV, atomically.

        Raises:
            ArgumentError: The path cannot be written.
        """
        path = Path(path)
        with whole_file(path) as aside, aside.open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, list(self.rows[0]) if self.rows else ["step", "time"])
            table.writeheader()
            table.writerows(self.rows)
        return path

    @classmethod
    def load(cls, path: str | Path, until: int | None = None) -> "Observations":
        """Read what `save` wrote, up to and with a step.

        Raises:
            ArgumentError: The file is missing or is not such a table.
        """
        try:
            with Path(path).open(newline="", encoding="utf-8") as file:
                texts = list(csv.DictReader(file))
            rows = [
                {k: float(v) for k, v in row.items()} | {"step": int(row["step"])}
                for row in texts
            ]
        except OSError as problem:
            raise ArgumentError(f"cannot read `{path}`: {problem.strerror}") from None
        except (ValueError, TypeError, KeyError):
            raise ArgumentError(f"`{path}` is damaged or not a table of observables") from None
        return cls(row for row in rows if until is None or row["step"] <= until)

    def figure(self, title: str = "") -> "Figure":
        """A matplotlib figure with a curve for each observable, over time.

        Raises:
            MissingPartError: matplotlib is not installed.
        """
        need_matplotlib()
        from matplotlib.figure import Figure

        names = [
            name for name in (self.rows[0] if self.rows else {}) if name not in ("step", "time")
        ]
        figure = Figure((8, 0.9 + 1.6 * max(1, len(names))), dpi=120, layout="constrained")
        figure.suptitle(title, size=11, weight="bold", x=0.01, ha="left")
        times = [row["time"] for row in self.rows]
        panels = figure.subplots(max(1, len(names)), sharex=True, squeeze=False)[:, 0]
        for panel, name in zip(panels, names, strict=False):
            values = [row[name] for row in self.rows]
            panel.plot(times, values, lw=1.4, color="C0")
            # What is conserved must look so: round-off does not fill a panel.
            most = max(map(abs, values))
            if max(values) - min(values) < 1e-3 * most:
                panel.set_ylim(min(values) - 1e-3 * most, max(values) + 1e-3 * most)
            panel.ticklabel_format(useOffset=False)
            panel.set_ylabel(name.replace("_", " "))
            panel.grid(color="0.9")
            panel.margins(x=0)
        panels[-1].set_xlabel("time")
        return figure
