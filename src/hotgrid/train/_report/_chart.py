"""One chart of the report, as inline SVG."""

import html
import json
import math
from collections.abc import Iterator, Mapping, Sequence

from ._plot import Axis, short

_WIDTH, _HEIGHT = 620, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 12, 28
_MOST_POINTS = 500
# Curves with more points are drawn faintly, with a smoothed one on top.
_SMOOTHED_ABOVE = 80

Points = Sequence[tuple[int, float]]


def chart(title: str, series: Mapping[str, Points], marks: Sequence[int] = ()) -> str:
    """A figure: curves over steps, with axes and a legend.

    Args:
        title: The name of the chart.
        series: Points (step, value) by name.
        marks: Steps with a vertical line, where a run was resumed or rolled back.
    """
    values = [value for points in series.values() for _, value in points]
    steps = [step for points in series.values() for step, _ in points]
    frame = _Frame(Axis(values), min(steps), max(steps))
    body = [*frame.grid(), *frame.marks(marks)]
    data: dict[str, Points] = {}
    for number, (name, points) in enumerate(series.items()):
        few = thinned(points, _MOST_POINTS)
        data[name] = few
        smooth = len(points) > _SMOOTHED_ABOVE
        kind = "raw" if smooth else "line"
        body.append(frame.line(few, f"{kind} s{number % 6}"))
        if smooth:
            body.append(
                frame.line(thinned(smoothed(points), _MOST_POINTS), f"line s{number % 6}")
            )
        step, value = points[-1]
        x, y = frame.place(step, value)
        body.append(f'<circle class="end s{number % 6}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>')
    keys = "".join(
        f'<span class="key s{number % 6}">{html.escape(name)} '
        f"<b>{html.escape(short(points[-1][1]))}</b></span>"
        for number, (name, points) in enumerate(series.items())
    )
    told = f"{title}, " + ", ".join(f"{n} ends at {short(p[-1][1])}" for n, p in series.items())
    facts = {"title": title, "series": data, **frame.facts()}
    return (
        f'<figure class="chart" data-chart="{html.escape(json.dumps(facts), quote=True)}">'
        f"<figcaption><h2>{html.escape(title)}{' <small>log</small>' * frame.axis.log}</h2>"
        f'<div class="keys">{keys}</div></figcaption>'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{html.escape(told)}">'
        f"{''.join(body)}</svg></figure>"
    )


class _Frame:
    def __init__(self, axis: Axis, first: int, last: int) -> None:
        self.axis, self._first, self._last = axis, first, last

    def place(self, step: int, value: float) -> tuple[float, float]:
        across = (step - self._first) / max(1, self._last - self._first)
        x = _LEFT + across * (_WIDTH - _LEFT - _RIGHT)
        y = _TOP + (1 - self._up(value)) * (_HEIGHT - _TOP - _BOTTOM)
        return x, y

    def line(self, points: Points, kind: str) -> str:
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in (self.place(*p) for p in points))
        return f'<polyline class="{kind}" points="{places}"/>'

    def grid(self) -> Iterator[str]:
        for value in ticks(self.axis):
            _, y = self.place(self._first, value)
            yield _rule("grid", _LEFT, y, _WIDTH - _RIGHT, y)
            yield _label(_LEFT - 8, y + 4, "end", short(value))
        for step in whole_ticks(self._first, self._last):
            x, _ = self.place(step, self.axis.low)
            yield _label(x, _HEIGHT - 8, "middle", f"{step:,}")

    def marks(self, steps: Sequence[int]) -> Iterator[str]:
        for step in steps:
            x, _ = self.place(step, self.axis.low)
            yield _rule("mark", x, _TOP, x, _HEIGHT - _BOTTOM)

    def facts(self) -> dict[str, object]:
        box = [_LEFT, _TOP, _WIDTH - _RIGHT, _HEIGHT - _BOTTOM]
        return {"box": box, "steps": [self._first, self._last]}

    def _up(self, value: float) -> float:
        # A margin, so that curves do not touch the frame.
        return 0.04 + 0.92 * self.axis.at(value)


def _rule(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _label(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text class="tick" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def ticks(axis: Axis, count: int = 5) -> list[float]:
    """Round values inside the range of an axis."""
    if axis.high == axis.low:
        return [axis.low]
    if axis.log:
        low, high = math.log10(axis.low), math.log10(axis.high)
        found = [
            base * 10.0**power
            for power in range(math.floor(low), math.ceil(high) + 1)
            for base in ((1,) if high - low > 2 else (1, 2, 5))
            if axis.low <= base * 10.0**power <= axis.high
        ]
        every = -(-len(found) // 6) or 1
        return found[::every]
    step = nice((axis.high - axis.low) / count)
    first = math.ceil(axis.low / step)
    return [round(at * step, 12) for at in range(first, math.floor(axis.high / step) + 1)]


def whole_ticks(first: int, last: int) -> list[int]:
    """Round steps between two steps."""
    step = max(1, round(nice((last - first) / 5)))
    return list(range(-(-first // step) * step, last + 1, step))


def nice(width: float) -> float:
    """The next of 1, 2, 5, 10, ... times a power of ten."""
    if width <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(width))
    return next(base * power for base in (1, 2, 5, 10) if base * power >= width * (1 - 1e-9))


def smoothed(points: Points) -> list[tuple[int, float]]:
    """A moving average that forgets over a fortieth of the curve."""
    weight = 1 - math.exp(-40 / len(points))
    found: list[tuple[int, float]] = []
    mean = points[0][1]
    for step, value in points:
        mean += weight * (value - mean)
        found.append((step, mean))
    return found


def thinned(points: Points, most: int) -> Points:
    """Fewer points that look the same: of each part the lowest and the highest."""
    if len(points) <= most:
        return points
    size = -(-2 * len(points) // most)
    found: list[tuple[int, float]] = [points[0]]
    for at in range(0, len(points), size):
        part = points[at : at + size]
        found += sorted({min(part, key=lambda p: p[1]), max(part, key=lambda p: p[1])})
    return [*found, points[-1]]
