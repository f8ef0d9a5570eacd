"""A terminal that knows the codes of `TerminalPicture`, and what it shows."""

import contextlib
import fcntl
import os
import re
import struct
import sys
import termios
import threading
from collections.abc import Iterator
from typing import Any

Colour = tuple[int, int, int] | None
_CODE = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])|(.|\n|\r)", re.DOTALL)
_CUBE = (0, 95, 135, 175, 215, 255)


def colour_256(number: int) -> Colour:
    if number >= 232:
        grey = 8 + 10 * (number - 232)
        return grey, grey, grey
    number -= 16
    return _CUBE[number // 36], _CUBE[number // 6 % 6], _CUBE[number % 6]


class Screen:
    """Characters with their colours, the cursor, and whether it is seen."""

    def __init__(self) -> None:
        self.rows: list[dict[int, tuple[str, Colour, Colour]]] = [{}]
        self.row = self.column = 0
        self.front: Colour = None
        self.back: Colour = None
        self.cursor_shown = True
        self.frames = 0

    def feed(self, text: str) -> "Screen":
        for private, numbers, kind, plain in _CODE.findall(text):
            if plain:
                self._type(plain)
            elif private:
                self.cursor_shown = kind == "h"
                self.frames += kind == "l"
            else:
                self._obey(kind, [int(n or 0) for n in numbers.split(";")])
        return self

    def _type(self, character: str) -> None:
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self.row += 1
            self.rows += [{}] * (self.row == len(self.rows))
            self.rows[-1] = dict(self.rows[-1])
        else:
            self.rows[self.row][self.column] = (character, self.front, self.back)
            self.column += 1

    def _obey(self, kind: str, numbers: list[int]) -> None:
        match kind:
            case "A":
                self.row -= numbers[0]
                assert self.row >= 0, "above what was ever written"
            case "H":
                self.row = self.column = 0
            case "J" if numbers == [2]:
                self.rows = [{} for _ in self.rows]
            case "J":
                self.rows[self.row :] = [{} for _ in self.rows[self.row :]]
            case "K":
                self.rows[self.row] = {}
            case "m":
                self._colour(numbers)
            case _:
                raise AssertionError(f"an unknown code {kind} {numbers}")

    def _colour(self, numbers: list[int]) -> None:
        while numbers:
            if numbers[0] == 0:
                self.front = self.back = None
                numbers = numbers[1:]
                continue
            if numbers[0] == 49:
                self.back = None
                numbers = numbers[1:]
                continue
            if numbers[1] == 2:
                colour, rest = (numbers[2], numbers[3], numbers[4]), numbers[5:]
            else:
                colour, rest = colour_256(numbers[2]), numbers[3:]
            if numbers[0] == 38:
                self.front = colour
            else:
                self.back = colour
            numbers = rest

    def text(self, row: int) -> str:
        return "".join(cell[0] for _, cell in sorted(self.rows[row].items()))

    def pixels(self) -> list[list[Colour]]:
        """Two rows for each line of blocks, down to the first line of text."""
        found: list[list[Colour]] = []
        for row in self.rows:
            cells = [cell for _, cell in sorted(row.items())]
            if not cells or any(cell[0] != "▀" for cell in cells):
                break
            found.append([cell[1] for cell in cells])
            if any(cell[2] is not None for cell in cells):
                found.append([cell[2] for cell in cells])
        return found


class Terminal:
    """A pseudo terminal; `output` is all that was written to it."""

    def __init__(self, lines: int, columns: int) -> None:
        self.master, self.slave = os.openpty()
        self._raw = b""
        self.resize(lines, columns)
        attributes = termios.tcgetattr(self.slave)
        attributes[1] &= ~termios.OPOST
        termios.tcsetattr(self.slave, termios.TCSANOW, attributes)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def resize(self, lines: int, columns: int) -> None:
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, size)

    def _read(self) -> None:
        while True:
            try:
                found = os.read(self.master, 65536)
            except OSError:
                return
            if not found:
                return
            self._raw += found

    def close(self) -> str:
        """End it, and tell all that was written."""
        os.close(self.slave)
        self._reader.join(10)
        os.close(self.master)
        return self._raw.decode()

    @property
    def seen_so_far(self) -> str:
        return self._raw.decode(errors="ignore")


@contextlib.contextmanager
def stderr_on(terminal: Terminal, monkeypatch: Any) -> Iterator[None]:
    with (
        monkeypatch.context() as patched,
        os.fdopen(os.dup(terminal.slave), "w", encoding="utf-8") as stream,
    ):
        patched.setattr(sys, "stderr", stream)
        yield
