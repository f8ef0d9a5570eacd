"""Isotropic rules that are not totalistic, in Hensel's notation: `B2-a/S12`.

A count alone does not say how neighbours lie around a cell. Turning and mirroring the
window divides its 256 neighbourhoods into 51 classes; a letter after the count names one.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NoReturn

from hotgrid.errors import ArgumentError

# One neighbourhood of each class, as a picture: rows from the top, `o` is alive.
_DRAWN = {
    "1c": "o.. ... ...",
    "1e": ".o. ... ...",
    "2c": "o.o ... ...",
    "2e": ".o. o.. ...",
    "2a": "oo. ... ...",
    "2i": "... o.o ...",
    "2k": "o.. ..o ...",
    "2n": "..o ... o..",
    "3c": "o.o ... o..",
    "3e": ".o. o.o ...",
    "3a": "oo. o.. ...",
    "3i": "ooo ... ...",
    "3k": ".o. ..o o..",
    "3n": "o.o o.. ...",
    "3j": ".oo o.. ...",
    "3q": ".oo ... o..",
    "3r": "o.. o.o ...",
    "3y": "o.. ..o o..",
    "4c": "o.o ... o.o",
    "4e": ".o. o.o .o.",
    "4a": "ooo o.. ...",
    "4i": "o.o o.o ...",
    "4k": "oo. ..o o..",
    "4n": "ooo ... o..",
    "4j": ".o. o.o o..",
    "4q": ".oo ..o o..",
    "4r": "oo. o.o ...",
    "4y": "o.o ..o o..",
    "4t": "o.. o.o o..",
    "4w": ".oo o.. o..",
    "4z": "..o o.o o..",
}
_MIDDLE = 4
_FORM = re.compile(
    r"\s*(?P<first>[bs]?)(?P<a>[^/]*?)(?P<slash>/?)(?P<second>[bs]?)(?P<b>[^/]*)", re.I
)
# Without a slash; no class has the letter `b` or `s`.
_JOINED = re.compile(
    r"(?P<first>b|s)(?P<a>[^/bs]*)(?P<second>b|s)(?P<b>[^/bs]*)(?P<slash>)", re.I
)
_ITEM = re.compile(r"(\d)(-?)([a-z]*)")
ISOTROPIC = {
    "just friends": "B2-a/S12",
    "tlife": "B3/S2-i34q",
}
"""Rules that have a name."""


@dataclass(frozen=True)
class IsotropicRule:
    """When a cell is born and survives, by how its living neighbours lie around it.

    Attributes:
        birth: Classes of neighbourhoods, such as `2c`; `0` and `8` have no letter.
        survival: The same for living cells.

    Example:
        >>> rule = IsotropicRule.parse("B2-a/S12")
        >>> sorted(rule.birth)
        ['2c', '2e', '2i', '2k', '2n']
        >>> str(rule)
        'B2-a/S12'

    Raises:
        ArgumentError: There is no such class.
    """

    birth: Collection[str]
    survival: Collection[str]

    def __post_init__(self) -> None:
        for name in ("birth", "survival"):
            given = getattr(self, name)
            for each in given:
                if each not in classes():
                    raise ArgumentError(
                        f"`{name}` has the class {each!r}; classes are 0, 8, and a count and a "
                        f"letter such as `2a` (there are {', '.join(classes())})"
                    )
            object.__setattr__(self, name, frozenset(given))

    @classmethod
    def parse(cls, text: str) -> "IsotropicRule":
        """Read `B2-a/S12`: a count with its letters, or with `-` and the letters it lacks.

        A count without letters means all of them. Without `B` and `S`, survival comes first.

        Raises:
            ArgumentError: It is not such a rule; the message shows the place.
        """
        if not isinstance(text, str):
            raise ArgumentError(f"`rule` must be a text such as `B2-a/S12`, got {text!r}")
        text = ISOTROPIC.get(text.strip().lower(), text)
        body = text.strip()
        found = _JOINED.fullmatch(body) or _FORM.fullmatch(body)
        letters = (found["first"] + found["second"]).lower() if found else ""
        if found is None or letters not in ("bs", "sb", "") or not (letters or found["slash"]):
            _refuse(
                body, len(body), "expected both `B` and `S`, once each, or `/` between them"
            )
        parts = [frozenset(_read(body, *found.span(part))) for part in ("a", "b")]
        survival, birth = parts if letters in ("sb", "") else reversed(parts)
        return cls(birth, survival)

    def table(self) -> tuple[bool, ...]:
        """The next cell for each of the 512 windows; bit `3 y + x` of the place is a cell."""
        known = classes()
        lives = [
            frozenset(place for name in names for place in known[name])
            for names in (self.birth, self.survival)
        ]
        middle = 1 << _MIDDLE
        return tuple(w & ~middle in lives[bool(w & middle)] for w in range(512))

    def __str__(self) -> str:
        return f"B{_written(self.birth)}/S{_written(self.survival)}"


@cache
def classes() -> dict[str, frozenset[int]]:
    """The neighbourhoods of every class, as windows without the cell itself."""
    found = {"0": frozenset({0}), "8": frozenset({511 & ~(1 << _MIDDLE)})}
    for name, drawn in _DRAWN.items():
        cells = [letter == "o" for letter in drawn.replace(" ", "")]
        orbit = frozenset(_window(cells, turn) for turn in _symmetries())
        found[name] = orbit
        # Above four, a letter means that the dead neighbours lie as the living ones below.
        if name[0] != "4":
            others = 511 & ~(1 << _MIDDLE)
            found[f"{8 - int(name[0])}{name[1]}"] = frozenset(others & ~w for w in orbit)
    return dict(sorted(found.items()))


def _symmetries() -> Iterator[list[int]]:
    """The eight ways to turn and mirror a window: where each of its nine cells comes from."""
    places = [(y, x) for y in range(3) for x in range(3)]
    for mirrored in (False, True):
        for _ in range(4):
            yield [3 * y + (2 - x if mirrored else x) for y, x in places]
            places = [(x, 2 - y) for y, x in places]


def _window(cells: list[bool], moved: Iterable[int]) -> int:
    return sum(1 << i for i, place in enumerate(moved) if cells[place])


def _letters(count: str) -> str:
    return "".join(name[1:] for name in classes() if name[0] == count)


def _read(text: str, at: int, end: int) -> Iterator[str]:
    while at < end:
        item = _ITEM.match(text, at, end)
        if item is None or item[1] == "9":
            _refuse(text, at, "expected a count from 0 to 8 here")
        known = _letters(item[1])
        for i, letter in enumerate(item[3]):
            if letter not in known:
                column = item.start(3) + i
                _refuse(text, column, f"{item[1]} has the letters {known or 'none'}")
        if item[2] and not item[3]:
            _refuse(text, item.end(), "expected the letters that are left out")
        chosen = set(known) - set(item[3]) if item[2] else set(item[3]) or set(known)
        yield from (item[1] + letter for letter in chosen) if known else [item[1]]
        at = item.end()


def _written(names: Collection[str]) -> str:
    text = ""
    for count in "012345678":
        known = _letters(count)
        here = "".join(sorted(name[1:] for name in names if name[0] == count))
        if not known:
            text += count * (count in names)
        elif len(here) == len(known):
            text += count
        elif len(here) > len(known) // 2:
            text += f"{count}-{''.join(sorted(set(known) - set(here)))}"
        elif here:
            text += count + here
    return text


def _refuse(text: str, column: int, reason: str) -> NoReturn:
    raise ArgumentError(
        f"`{text}` is not an isotropic rule: {reason}\n  {text}\n  {' ' * column}^\n"
        f"write it as `B2-a/S12`, or a name ({', '.join(ISOTROPIC)})"
    )
