"""Curves as text: two by four dots in each character."""

import math
from collections.abc import Mapping, Sequence

from rich.text import Text

Points = Sequence[tuple[int, float]]
COLOURS = ("bright_blue", "yellow", "green", "magenta", "cyan", "red")
"""The colours of curves, in their order."""
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_LABEL = 9


def text_plot(
    series: Mapping[str, Points], *, width: int = 60, height: int = 8, log: bool | None = None
) -> Text:
    """Return curves as lines of text, with the range of both axes.

    Args:
        series: Points (step, value) by name; each name has its own colour.
        width: Characters in a line, labels included.
        height: Lines of the plot itself.
        log: A logarithmic axis of values; by default where all are positive and the
            largest is 50 times the smallest.

    Example:
        >>> plot = text_plot({"loss": [(0, 2.0), (10, 1.0)]}, width=22, height=2)
        >>> for line in plot.plain.splitlines():
        ...     print(line.rstrip())
                2 ┤⠉⠒⠢⠤⣀⡀
                1 ┤     ⠈⠉⠒⠢⠤⣀
                   0        10
    """
    kept = {name: [p for p in each if math.isfinite(p[1])] for name, each in series.items()}
    points = [point for each in kept.values() for point in each]
    columns = max(4, width - _LABEL - 2)
    if not points:
        return Text("(no values yet)")
    axis = Axis([value for _, value in points], log)
    first, last = min(s for s, _ in points), max(s for s, _ in points)
    cells = [[0] * columns for _ in range(height)]
    owner = [[0] * columns for _ in range(height)]
    for number, each in enumerate(kept.values()):
        for column, low, high in _columns(each, first, last, 2 * columns, axis):
            top = round((1 - high) * (4 * height - 1))
            for row in range(top, round((1 - low) * (4 * height - 1)) + 1):
                cells[row // 4][column // 2] |= _DOTS[row % 4][column % 2]
                owner[row // 4][column // 2] = number
    text = Text()
    for row in range(height):
        label = {0: short(axis.high), height - 1: short(axis.low)}.get(row, "")
        text.append(f"{label:>{_LABEL}} ┤", "dim")
        for dots, number in zip(cells[row], owner[row], strict=True):
            shown = chr(0x2800 + dots) if dots else " "
            text.append(shown, COLOURS[number % len(COLOURS)])
        text.append("\n")
    ends = f"{first:,}{last:>{max(1, columns - len(f'{first:,}'))},}"
    text.append(" " * (_LABEL + 2) + ends, "dim")
    return text


class Axis:
    """A range of values, mapped to 0 to 1."""

    def __init__(self, values: Sequence[float], log: bool | None = None) -> None:
        self.low, self.high = min(values), max(values)
        if log is None:
            log = self.low > 0 and self.high > 50 * self.low
        self.log = log and self.low > 0
        self._from, self._to = self._bent(self.low), self._bent(self.high)

    def at(self, value: float) -> float:
        """Where a value is between the lowest and the highest."""
        if self._to == self._from:
            return 0.5
        return min(1.0, max(0.0, (self._bent(value) - self._from) / (self._to - self._from)))

    def _bent(self, value: float) -> float:
        return math.log(max(value, self.low)) if self.log else value


def short(value: float | None) -> str:
    """A number in a few characters; n/a for None."""
    if value is None:
        return "n/a"
    if value and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.2e}"
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def _columns(
    points: Points, first: int, last: int, columns: int, axis: Axis
) -> list[tuple[int, float, float]]:
    """For each column the lowest and highest place of the curve; gaps are joined."""
    found: dict[int, list[float]] = {}
    before: tuple[int, float] | None = None
    for step, value in points:
        at = round((step - first) / max(1, last - first) * (columns - 1))
        place = axis.at(value)
        found.setdefault(at, []).append(place)
        if before is not None:
            for between in range(before[0] + 1, at):
                share = (between - before[0]) / (at - before[0])
                found.setdefault(between, []).append(before[1] + share * (place - before[1]))
        before = (at, place)
    return [(at, min(each), max(each)) for at, each in sorted(found.items())]
