"""RLE, the usual format of Life patterns: runs of cells as counts and letters."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError

from ._pattern import Pattern, expect_pattern
from ._rule import Rule
from ._source import Source, saved

_WIDTH = 70
_HEADER = re.compile(
    r"\s*x\s*=\s*(?P<x>\d{1,10})\s*,\s*y\s*=\s*(?P<y>\d{1,10})\s*(?:,\s*rule\s*=\s*(?P<rule>.*?))?\s*$",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"\s*(?P<count>\d*)\s*(?P<tag>\S?)")
_STATES = {"b": 0, ".": 0, "o": 1, "A": 1}
# A text of a few letters must not allocate all memory.
_MOST = 1 << 32


class _Run(NamedTuple):
    """So many cells or ends of row, and their position in the text."""

    times: int
    tag: str
    at: int


def read_rle(source: str | Path) -> Pattern:
    """Read a pattern in RLE.

    The line `x = 3, y = 3, rule = B3/S23` may be missing, as it is in snippets; the
    size is then that of the cells. `#N` names the pattern, `#C` and `#O` are comments,
    other lines with `#` are passed over, as is what follows `!`, and the bounds of a
    grid in the rule (`:T100,80`).

    Arguments:
        source: The text, or a file: a `Path`, or a str that ends in `.rle`.

    Example:
        >>> read_rle("bob$2bo$3o!").cells
        tensor([[0, 1, 0],
                [0, 0, 1],
                [1, 1, 1]], dtype=torch.uint8)

    Raises:
        ArgumentError: It is not RLE of two states; the message gives line and column.
    """
    given = Source.of(source, ".rle")
    name, comments, at = "", [], 0
    rule, size = None, None
    for line in given.text.splitlines(keepends=True):
        kind, rest = line.strip()[:2], line.strip()[2:].strip()
        if kind == "#N":
            name = rest
        elif kind in ("#C", "#c", "#O") and not line.startswith("#CXRLE"):
            comments.append(rest)
        elif kind[:1] in ("x", "X"):
            rule, size = _header(given, line, at)
            at += len(line)
            break
        elif kind and not kind.startswith("#"):
            break
        at += len(line)
    runs = list(_runs(given, at))
    return Pattern(_drawn(given, runs, size or _extent(runs)), rule, name, comments)


def write_rle(pattern: Pattern, path: str | Path | None = None) -> str:
    """A pattern in RLE, in lines of at most 70 characters.

    Arguments:
        pattern: The pattern.
        path: A file to write it to as well.

    Example:
        >>> print(write_rle(read_rle("bob$2bo$3o!")), end="")
        x = 3, y = 3
        bo$2bo$3o!

    Raises:
        ArgumentError: The file cannot be written.
    """
    expect_pattern(pattern)
    rows, columns = pattern.cells.shape
    lines = [f"#N {pattern.name}"] if pattern.name else []
    lines += [f"#C {comment}".rstrip() for comment in pattern.comments]
    rule = f", rule = {pattern.rule}" if pattern.rule else ""
    lines.append(f"x = {columns}, y = {rows}{rule}")
    line = ""
    for token in _tokens(pattern):
        if len(line) + len(token) > _WIDTH:
            lines.append(line)
            line = ""
        line += token
    return saved("\n".join([*lines, line, ""]), path)


def _tokens(pattern: Pattern) -> Iterator[str]:
    """Runs as text; dead cells at the end of a row and empty rows at the end go unsaid."""
    ends = 0
    for row in pattern.cells.tolist():
        letters = "".join("bo"[cell] for cell in row).rstrip("b")
        if letters and ends:
            yield f"{ends if ends > 1 else ''}$"
            ends = 0
        for run in re.finditer(r"b+|o+", letters):
            count = len(run[0])
            yield f"{count if count > 1 else ''}{run[0][0]}"
        ends += 1
    yield "!"


def _header(given: Source, line: str, at: int) -> tuple[Rule | None, tuple[int, int]]:
    found = _HEADER.match(line)
    if found is None:
        given.refuse(at, "expected `x = ..., y = ..., rule = ...`")
    size = (int(found["y"]), int(found["x"]))
    if not found["rule"]:
        return None, size
    try:
        return Rule.parse(found["rule"].split(":")[0]), size
    except ArgumentError as problem:
        given.refuse(at + found.start("rule"), str(problem).splitlines()[0])


def _runs(given: Source, at: int) -> Iterator[_Run]:
    while True:
        token = _TOKEN.match(given.text, at)
        assert token is not None  # noqa: S101  every part of it may be empty
        count, tag, place = token["count"], token["tag"], token.start("tag")
        if not tag:
            given.refuse(len(given.text.rstrip()), "it ends without `!`")
        if tag == "!" and not count:
            return
        if tag not in _STATES and tag != "$":
            given.refuse(place, f"unexpected `{tag}`: cells are `b` (dead) and `o` (alive)")
        if count and not 0 < int(count[:12]) < _MOST:
            given.refuse(place, f"the count {count} is too small or too large")
        yield _Run(int(count or 1), tag, place)
        at = place + 1


def _extent(runs: list[_Run]) -> tuple[int, int]:
    row = column = rows = columns = 0
    for run in runs:
        if run.tag == "$":
            row, column = row + run.times, 0
        else:
            column += run.times
            rows, columns = row + 1, max(columns, column)
    return rows, columns


def _drawn(given: Source, runs: list[_Run], size: tuple[int, int]) -> Tensor:
    rows, columns = size
    if rows * columns > _MOST:
        given.refuse(0, f"a pattern of {columns} x {rows} cells is too large")
    cells = torch.zeros(size, dtype=torch.uint8)
    row = column = 0
    for run in runs:
        if run.tag == "$":
            row, column = row + run.times, 0
            continue
        end = column + run.times
        if end > columns or row >= rows:
            given.refuse(run.at, f"these cells leave the {columns} x {rows} of the header")
        if _STATES[run.tag]:
            cells[row, column:end] = 1
        column = end
    return cells
