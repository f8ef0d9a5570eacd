"""Drawings of schedules, as text and as pictures."""

from collections.abc import Callable
from pathlib import Path

from hotgrid.errors import ArgumentError
from hotgrid.files import whole_file

_ROWS = 10
_SUFFIXES = (".png", ".svg", ".pdf")
# Eighths of a character cell, from empty to full.
_BARS = " ▁▂▃▄▅▆▇█"
_MARGIN = 11


def draw_text(schedule: Callable[[int], float], steps: int, width: int) -> str:
    """A bar for every column, the largest and smallest value at the left, steps below."""
    columns = max(8, width - _MARGIN)
    places = [round(column * steps / (columns - 1)) for column in range(columns)]
    values = [schedule(step) for step in places]
    low, high = min(0.0, *values), max(values)
    span = (high - low) or 1.0
    heights = [round((value - low) / span * _ROWS * 8) for value in values]
    lines = []
    for row in reversed(range(_ROWS)):
        label = {_ROWS - 1: f"{high:.4g}", 0: f"{low:.4g}"}.get(row, "")
        bars = "".join(_BARS[min(8, max(0, height - 8 * row))] for height in heights)
        lines.append(f"{label:>{_MARGIN - 2}} ┤{bars}".rstrip())
    return "\n".join([*lines, f"{'step':>{_MARGIN - 2}}  0{steps:>{columns - 1}}"])


def write_picture(schedule: Callable[[int], float], steps: int, path: Path) -> None:
    """A line over steps, written by matplotlib."""
    if path.suffix.lower() not in _SUFFIXES:
        raise ArgumentError(
            f"cannot draw to `{path}`: the name must end in {', '.join(_SUFFIXES)}"
        )
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.add_subplot()
    places = sorted({round(k * steps / 2000) for k in range(2001)})
    axes.plot(places, [schedule(step) for step in places])
    axes.set(xlabel="step", xlim=(0, max(1, steps)))
    axes.grid(alpha=0.3)
    with whole_file(path) as aside:
        figure.savefig(aside, dpi=150)
