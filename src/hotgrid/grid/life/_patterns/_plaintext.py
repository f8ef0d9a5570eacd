"""The `.cells` format: a picture in dots and letters."""

import re
from pathlib import Path

import torch

from hotgrid.errors import ArgumentError

from ._pattern import Pattern, expect_pattern
from ._source import Source, saved


def read_cells(source: str | Path) -> Pattern:
    r"""Read a pattern in the `.cells` format.

    A line is a row: `.` is dead, `O` or `*` alive, and rows may be short. Lines that
    begin with `!` are comments, `!Name: ...` is the name.

    Arguments:
        source: The text, or a file: a `Path`, or a str that ends in `.cells`.

    Example:
        >>> read_cells(".O\n..O\nOOO").cells
        tensor([[0, 1, 0],
                [0, 0, 1],
                [1, 1, 1]], dtype=torch.uint8)

    Raises:
        ArgumentError: A line holds something else; the message gives line and column.
    """
    given = Source.of(source, ".cells")
    name, comments, rows, at = "", [], [], 0
    for line in given.text.splitlines(keepends=True):
        if line.startswith("!Name:"):
            name = line.removeprefix("!Name:").strip()
        elif line.startswith("!"):
            comments.append(line[1:].strip())
        else:
            rows.append(line.rstrip())
            stray = re.search(r"[^.O*]", rows[-1])
            if stray:
                reason = f"unexpected {stray[0]!r}: cells are `.` (dead) and `O` (alive)"
                given.refuse(at + stray.start(), reason)
        at += len(line)
    columns = max(map(len, rows), default=0)
    cells = [[letter != "." for letter in row.ljust(columns, ".")] for row in rows]
    return Pattern(torch.tensor(cells).reshape(len(rows), columns), None, name, comments)


def write_cells(pattern: Pattern, path: str | Path | None = None) -> str:
    """A pattern in the `.cells` format, which has no place for the rule.

    Arguments:
        pattern: The pattern.
        path: A file to write it to as well.

    Example:
        >>> from hotgrid.grid.life import read_rle
        >>> print(write_cells(read_rle("bob$2bo$3o!")), end="")
        .O.
        ..O
        OOO

    Raises:
        ArgumentError: The file cannot be written, or there are more than two states.
    """
    expect_pattern(pattern)
    if pattern.states > 2:
        raise ArgumentError(
            f"`.cells` has no letters for the {pattern.states} states of the pattern; use RLE"
        )
    lines = [f"!Name: {pattern.name}"] if pattern.name else []
    lines += [f"! {comment}".rstrip() for comment in pattern.comments]
    lines += ["".join(".O"[cell] for cell in row) for row in pattern.cells.tolist()]
    return saved("\n".join([*lines, ""]), path)
