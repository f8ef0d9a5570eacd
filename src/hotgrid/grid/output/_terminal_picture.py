"""A simulation drawn in the terminal while it runs: two pixels in each character."""

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from hotgrid.grid.forms import GridState

from ._reduced_view import ReducedView

if TYPE_CHECKING:
    from numpy.typing import NDArray

_UPPER_HALF = "▀"
_RESET, _HIDE, _SHOW = "\x1b[0m", "\x1b[?25l", "\x1b[?25h"
# Seconds from frame to frame, at least; and how much longer than drawing one takes.
_FRAME = 0.1
_TIMES_DRAWING = 4
_LEGEND = 12
# The colours 16 to 255 of terminals: a cube of 6 x 6 x 6, and 24 greys.
_CUBE = (0, 95, 135, 175, 215, 255)
_TABLE = np.array(
    [(r, g, b) for r in _CUBE for g in _CUBE for b in _CUBE]
    + [(8 + 10 * i,) * 3 for i in range(24)]
)


def has_true_colour() -> bool:
    """Whether the terminal says that it shows 24-bit colours."""
    return os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit")


def colour_codes(palette: "NDArray[np.uint8]", true_colour: bool) -> list[str]:
    """The code after `38;` or `48;` in the escape sequence of each colour of a palette."""
    if true_colour:
        return [f"2;{r};{g};{b}" for r, g, b in palette.tolist()]
    distances = ((palette[:, None].astype(int) - _TABLE) ** 2).sum(-1)
    return [f"5;{16 + nearest}" for nearest in distances.argmin(1).tolist()]


def half_blocks(levels: "NDArray[np.uint8]", codes: Sequence[str]) -> list[str]:
    """An image `[rows, columns]` of levels as lines of text, each of two rows."""
    lines: list[str] = []
    for upper in range(0, len(levels), 2):
        pair = levels[upper : upper + 2].tolist()
        fronts = [f"38;{codes[level]}" for level in pair[0]]
        # Where a last row has no partner, the background of the terminal is seen.
        backs = [f"48;{codes[level]}" for level in pair[1]] if len(pair) == 2 else None
        lines.append(_coloured(zip(fronts, backs or ["49"] * len(fronts), strict=True)))
    return lines


def _coloured(cells: Iterable[tuple[str, str]]) -> str:
    parts: list[str] = []
    last = None
    for cell in cells:
        if cell != last:
            parts.append(f"\x1b[{cell[0]};{cell[1]}m")
            last = cell
        parts.append(_UPPER_HALF)
    return "".join(parts) + _RESET


class TerminalPicture:
    """Draws a simulation on stderr while it runs, at most ten times a second.

    As a context it draws the state that there is, follows every run inside, and leaves the last
    picture above the cursor. Below the picture stand step, time, speed and the range of the
    colours. It follows the size of the terminal. Drawing takes at most a fifth of the time.
    With a mesh every rank makes the same picture, and the first one draws it.

    Arguments:
        simulation: What is drawn.
        view: One of the model's views; by default the model's own choice.
        goal: The last step, if that is known.

    Example:
        >>> from hotgrid.grid import pde
        >>> sim = Simulation(pde.Heat(), size=(16, 32), compiled=False)
        >>> if TerminalPicture.possible():
        ...     with TerminalPicture(sim):
        ...         speed = sim.run(1000, progress=False)

    Raises:
        ArgumentError: The model has no such view.
        MissingPartError: matplotlib is not installed.
    """

    def __init__(
        self, simulation: GridState, view: str | None = None, goal: int | None = None
    ) -> None:
        self._simulation = simulation
        self._goal = goal
        self._view = ReducedView(simulation, view)
        self._stream: TextIO = sys.stderr
        self._true_colour = has_true_colour()
        self._codes: dict[str, list[str]] = {}
        self._size: os.terminal_size | None = None
        self._lines: list[str] = []
        self._period = 0
        self._cost = 0.0
        self._writing = False
        # A run outlives its terminal.
        self._gone = False
        self._opened = contextlib.ExitStack()

    @staticmethod
    def possible() -> bool:
        """Whether stderr is a terminal that can show it."""
        stream = sys.stderr
        if stream is None or not stream.isatty() or os.environ.get("TERM") == "dumb":
            return False
        try:
            _UPPER_HALF.encode(stream.encoding)
            os.get_terminal_size(stream.fileno())
        except (OSError, ValueError):
            return False
        return True

    def __enter__(self) -> "TerminalPicture":
        self._drawn = self._asked = (self._simulation.step_count, time.perf_counter())
        if self._simulation._form.is_primary:
            self._opened.enter_context(contextlib.redirect_stderr(_Above(self)))  # pyright: ignore[reportArgumentType]
        try:
            self.draw()
        except BaseException:
            self._leave()
            raise
        self._follow(1)
        return self

    def __call__(self, simulation: GridState) -> None:
        """Draw the present state if it is time to; `every` calls it."""
        step, now = simulation.step_count, time.perf_counter()
        rate = (step - self._asked[0]) / max(now - self._asked[1], 1e-9)
        wanted = 1 << max(0, int(rate * _FRAME).bit_length() - 1)
        due = now - self._drawn[1] >= max(_FRAME, _TIMES_DRAWING * self._cost)
        # Every rank must take part after the same steps.
        ranks = simulation._form.ranks
        mine = [due, min(wanted, 4 * self._period)]
        due, period = mine if ranks is None else ranks.gather_json(mine)[0]
        if due:
            self.draw()
        self._follow(period)
        self._asked = (step, time.perf_counter())

    def draw(self) -> None:
        """Draw the present state over the one before."""
        simulation, begin = self._simulation, time.perf_counter()
        size, form = self._screen(), simulation._form
        # Every rank reduces its part to the screen of the first.
        shape = (size.columns, size.lines) if size else None
        shape = shape if form.ranks is None else form.ranks.gather_json(shape)[0]
        if shape is None:
            return
        # Below it are the line of text and the cursor.
        image = self._view.image(2 * max(1, shape[1] - 2), shape[0])
        if not form.is_primary or size is None:
            return
        try:
            self._draw(image, size)
        except OSError:
            self._gone = True
        self._cost = time.perf_counter() - begin
        self._drawn = (simulation.step_count, begin + self._cost)

    def _screen(self) -> os.terminal_size | None:
        """The size of the terminal; None where there is none any more, or not of this rank."""
        if self._gone or not self._simulation._form.is_primary:
            return None
        try:
            return os.get_terminal_size(self._stream.fileno())
        except OSError:
            self._gone = True
            return None

    def _draw(self, image: "NDArray[np.uint8]", size: os.terminal_size) -> None:
        codes = self._codes_now()
        lines = [*half_blocks(image, codes), self._status(codes, size.columns)]
        self._write(self._frame(lines, size))
        self._size, self._lines = size, lines

    def erase(self) -> None:
        """Remove the picture; the next one begins where the cursor is then."""
        if self._lines:
            self._write(f"\x1b[{len(self._lines)}A\r\x1b[J")
            self._lines = []

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self.draw()
        finally:
            self._follow(0)
            self._leave()

    def _leave(self) -> None:
        """Leave the terminal as it was, also in the middle of a picture."""
        self._opened.close()
        if self._simulation._form.is_primary:
            with contextlib.suppress(OSError):
                self._write(("\r\n" if self._writing else "") + _RESET + _SHOW)

    def _follow(self, period: int) -> None:
        """Be called every N steps; never if N is zero."""
        if period == self._period:
            return
        self._period = period
        others = [each for each in self._simulation._callbacks if each[1] is not self]
        self._simulation._callbacks[:] = others
        if period:
            self._simulation.every(period, self)

    def _codes_now(self) -> list[str]:
        colours = self._view.colours
        if colours.kind not in self._codes:
            found = colour_codes(colours.palette(), self._true_colour)
            self._codes[colours.kind] = found
        return self._codes[colours.kind]

    def _frame(self, lines: Sequence[str], size: os.terminal_size) -> str:
        """The codes that replace the previous lines by new ones."""
        before: Sequence[str] = self._lines
        begin = f"\x1b[{len(before)}A\r" if before else "\r"
        if self._size is not None and size != self._size:
            # Lines of another width were rewrapped; their positions are unknown.
            before, begin = [], "\x1b[2J\x1b[H"
        same = [*before] + [""] * (len(lines) - len(before))
        changed = ["" if line == old else line for line, old in zip(lines, same, strict=True)]
        return _HIDE + begin + "\r\n".join(changed) + "\r\n" + _SHOW

    def _status(self, codes: Sequence[str], columns: int) -> str:
        simulation, colours = self._simulation, self._view.colours
        step = simulation.step_count
        made, seconds = step - self._drawn[0], time.perf_counter() - self._drawn[1]
        name = f"{type(simulation.model).__name__}: {self._view.name.replace('_', ' ')}"
        goal = "" if self._goal is None else f" of {self._goal:,}"
        speed = f"{made / seconds:,.0f} steps/s" if made and seconds else ""
        if not self._period and simulation.compiled and step != self._goal:
            speed = "compiling"
        texts = [name, f"step {step:,}{goal}", f"time {simulation.time:g}", speed]
        text = "  ".join(filter(None, texts))[: columns - 1]
        low, high = f"  {colours.low:.3g} ", f" {colours.high:.3g}"
        if len(text) + len(low) + _LEGEND + len(high) < columns:
            bar = np.linspace(0, 254, _LEGEND).astype(int).tolist()
            text += low + _coloured((f"38;{codes[i]}", f"48;{codes[i]}") for i in bar) + high
        return f"\x1b[2K{text}"

    def _write(self, text: str) -> None:
        self._writing = True
        self._stream.write(text)
        self._stream.flush()
        self._writing = False


class _Above:
    """stderr while a picture is drawn there: what others write stands above it."""

    def __init__(self, picture: TerminalPicture) -> None:
        self._picture = picture

    def write(self, text: str) -> int:
        self._picture.erase()
        return self._picture._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._picture._stream, name)
