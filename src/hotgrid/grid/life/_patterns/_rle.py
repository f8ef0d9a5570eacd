"""RLE, the usual format of Life patterns: runs of cells as counts and letters."""

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.life._rules import AnyRule, Bounds, parse_rule, parted, states_of

from ._pattern import Pattern, expect_pattern
from ._source import Source, saved

_WIDTH = 70
_HEADER = re.compile(
    r"\s*x\s*=\s*(?P<x>\d{1,10})\s*,\s*y\s*=\s*(?P<y>\d{1,10})\s*(?:,\s*rule\s*=\s*(?P<rule>.*?))?\s*$",
    re.IGNORECASE,
)
# A state above 24 is two letters; `p` begins the next 24.
_TOKEN = re.compile(r"\s*(?P<count>\d*)\s*(?P<tag>[p-y][A-X]|\S?)")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWX"
_FURTHER = "pqrstuvwxy"
_STATES = {
    "b": 0,
    ".": 0,
    "o": 1,
    **{letter: 1 + i for i, letter in enumerate(_LETTERS)},
    **{
        further + letter: 25 + 24 * i + j
        for i, further in enumerate(_FURTHER)
        for j, letter in enumerate(_LETTERS)
        if 25 + 24 * i + j < 256
    },
}
_WRITTEN = {state: letters for letters, state in _STATES.items() if letters not in ("b", "o")}
_TWO = {0: "b", 1: "o"}
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
    other lines with `#` are passed over, as is what follows `!`. With more than two
    states, `.` is dead and `A` to `X`, `pA` to `yO` are the states from 1 to 255. The bounds
    of a grid in the rule (`:T100,80`) become those of the pattern.

    Arguments:
        source: The text, or a file: a `Path`, or a str that ends in `.rle`.

    Example:
        >>> read_rle("bob$2bo$3o!").cells
        tensor([[0, 1, 0],
                [0, 0, 1],
                [1, 1, 1]], dtype=torch.uint8)

    Raises:
        ArgumentError: It is not RLE, or its rule lacks a state; the message gives line and
            column.
    """
    given = Source.of(source, ".rle")
    name, comments, at = "", [], 0
    rule, size, bounds = None, None, None
    for line in given.text.splitlines(keepends=True):
        kind, rest = line.strip()[:2], line.strip()[2:].strip()
        if kind == "#N":
            name = rest
        elif kind in ("#C", "#c", "#O") and not line.startswith("#CXRLE"):
            comments.append(rest)
        elif kind[:1] in ("x", "X"):
            rule, bounds, size = _header(given, line, at)
            at += len(line)
            break
        elif kind and not kind.startswith("#"):
            break
        at += len(line)
    runs = list(_runs(given, at))
    states = _states(given, runs, rule)
    cells = _drawn(given, runs, size or _extent(runs))
    return Pattern(cells, rule, name, comments, states, bounds)


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
    if rule and pattern.bounds:
        rule += f":{pattern.bounds}"
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
    ends, written = 0, _TWO if pattern.states == 2 else _WRITTEN
    for row in pattern.cells.tolist():
        runs = [(cell, len(list(same))) for cell, same in groupby(row)]
        if runs and not runs[-1][0]:
            del runs[-1]
        if runs and ends:
            yield f"{ends if ends > 1 else ''}$"
            ends = 0
        for cell, count in runs:
            yield f"{count if count > 1 else ''}{written[cell]}"
        ends += 1
    yield "!"


def _header(
    given: Source, line: str, at: int
) -> tuple[AnyRule | None, Bounds | None, tuple[int, int]]:
    found = _HEADER.match(line)
    if found is None:
        given.refuse(at, "expected `x = ..., y = ..., rule = ...`")
    size = (int(found["y"]), int(found["x"]))
    if not found["rule"]:
        return None, None, size
    try:
        rule, bounds = parted(found["rule"])
        return parse_rule(rule), bounds, size
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
            given.refuse(
                place,
                f"unexpected `{tag}`: cells are `b` (dead) and `o` (alive), or with more than "
                "two states `.`, `A` to `X` and `pA` to `yO`",
            )
        if count and not 0 < int(count[:12]) < _MOST:
            given.refuse(place, f"the count {count} is too small or too large")
        yield _Run(int(count or 1), tag, place)
        at = place + len(tag)


def _states(given: Source, runs: list[_Run], rule: AnyRule | None) -> int:
    """The number of states: those of the rule, else as many as occur and at least two."""
    known = [(_STATES[run.tag], run) for run in runs if run.tag != "$"]
    if rule is None:
        return max([2, *[state + 1 for state, _ in known]])
    states = states_of(rule)
    for state, run in known:
        if state >= states:
            given.refuse(
                run.at,
                f"`{run.tag}` is the state {state}, but the rule {rule} has the states 0 to "
                f"{states - 1}",
            )
    return states


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
        cells[row, column:end] = _STATES[run.tag]
        column = end
    return cells
