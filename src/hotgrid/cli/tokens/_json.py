"""Tokens out of JSON arrays, in parts."""

import re
from collections.abc import Iterator
from json import JSONDecoder, dumps
from typing import BinaryIO, NoReturn

from hotgrid.errors import ArgumentError

_PART = 1 << 20
# Longer than any number or run of blanks in a valid file.
_LONGEST = 1 << 21
_BLANKS = re.compile(r"[ \t\r\n]*")


def read_json(source: BinaryIO, name: str) -> Iterator[list[int]]:
    """Tokens of JSON arrays of whole numbers, one array after another.

    Raises:
        ArgumentError: There is something else.
    """
    held, inside = "", False
    while part := source.read(_PART):
        held += part.decode("utf-8", "replace")
        cut = max(held.rfind(","), held.rfind("]")) + 1
        if not cut:
            if len(held) > _LONGEST:
                _refuse(name, held.lstrip())
            continue
        # An array that continues is closed behind a number, and opened again ahead of one: so a
        # comma without a neighbour stays wrong.
        ends_inside = held[cut - 1] == ","
        yield _numbers(held[:cut], name, begins_inside=inside, ends_inside=ends_inside)
        held, inside = held[cut:], ends_inside
    yield _numbers(held, name, begins_inside=inside, ends_inside=False)


def _numbers(text: str, name: str, *, begins_inside: bool, ends_inside: bool) -> list[int]:
    whole = f"{'[0,' if begins_inside else ''}{text}{'0]' if ends_inside else ''}"
    numbers: list[int] = []
    decoder = JSONDecoder()
    at = _end_of_blanks(whole, 0)
    while at < len(whole):
        if whole[at] != "[":
            _refuse(name, whole[at:])
        try:
            row, end = decoder.raw_decode(whole, at)
        except (ValueError, RecursionError) as problem:
            _refuse(name, whole[getattr(problem, "pos", at) :])
        if wrong := [each for each in row if type(each) is not int]:
            _refuse(name, dumps(wrong[0]))
        numbers += row
        at = _end_of_blanks(whole, end)
    return numbers[begins_inside : len(numbers) - ends_inside]


def _end_of_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _refuse(name: str, found: str) -> NoReturn:
    shown = repr(found[:40]) if found.strip() else "an end"
    raise ArgumentError(
        f"`{name}` has {shown} where a token or the end of an array should be; expected JSON "
        "arrays of whole numbers, such as [9906, 1917]. For other formats see `--format`"
    )
