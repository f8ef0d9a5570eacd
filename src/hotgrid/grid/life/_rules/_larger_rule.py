"""Rules of Larger than Life: counts over a wide neighbourhood, by ranges."""

import re
from dataclasses import dataclass
from typing import Literal

from hotgrid.errors import ArgumentError

LARGER = {
    "bosco": "R5,C0,M1,S34..58,B34..45,NM",
    "bugs": "R5,C0,M1,S34..58,B34..45,NM",
    "bugsmovie": "R10,C0,M1,S123..212,B123..170,NM",
    "waffle": "R7,C0,M1,S100..200,B75..170,NM",
    "globe": "R8,C0,M0,S163..223,B74..252,NM",
    "majority": "R4,C0,M1,S41..81,B41..81,NM",
    "majorly": "R7,C0,M1,S113..225,B113..225,NM",
}
"""Rules that have a name."""

Area = Literal["box", "diamond", "disc"]
_AREAS: dict[str, Area] = {"M": "box", "N": "diamond", "C": "disc"}
_FORM = re.compile(
    r"R(?P<r>\d+),C(?P<c>\d+),M(?P<m>[01]),S(?P<s>\d+)\.\.(?P<t>\d+),"
    r"B(?P<b>\d+)\.\.(?P<d>\d+),N(?P<n>[A-Z])",
    re.I,
)
# Counts are added up in two bytes.
_LARGEST = 50
_MOST_STATES = 255


@dataclass(frozen=True)
class LargerRule:
    """When a cell is born and survives, by the number of living cells around it.

    Attributes:
        radius: How far the neighbourhood reaches.
        birth: The smallest and the largest count that bring a dead cell to life.
        survival: The smallest and the largest count that keep one alive.
        states: 2, or more for cells that age as in Generations.
        middle: Whether a cell counts itself.
        area: `"box"` is every cell within the radius, `"diamond"` those within this many moves
            up, down and sideways, `"disc"` those with `x^2 + y^2 <= r^2 + r`.

    Example:
        >>> rule = LargerRule.parse("R5,C0,M1,S34..58,B34..45,NM")
        >>> rule.radius, rule.most
        (5, 121)

    Raises:
        ArgumentError: A number is not possible.
    """

    radius: int
    birth: tuple[int, int]
    survival: tuple[int, int]
    states: int = 2
    middle: bool = True
    area: Area = "box"

    def __post_init__(self) -> None:
        if not 1 <= self.radius <= _LARGEST:
            raise ArgumentError(
                f"the radius of a rule is from 1 to {_LARGEST} cells, got {self.radius}"
            )
        if not 2 <= self.states <= _MOST_STATES:
            raise ArgumentError(
                f"a rule has from 2 to {_MOST_STATES} states, got {self.states}"
            )
        for name in ("birth", "survival"):
            low, high = getattr(self, name)
            if not 0 <= low <= high:
                raise ArgumentError(f"`{name}` must be a range that goes up, got {low}..{high}")

    @classmethod
    def parse(cls, text: str) -> "LargerRule":
        """Read `R5,C0,M1,S34..58,B34..45,NM`, or a name.

        `C` is the number of states (0 and 1 mean 2), `M1` counts the cell itself, and the
        neighbourhood is `NM` (Moore), `NN` (von Neumann) or `NC` (circular).

        Raises:
            ArgumentError: It is not such a rule.
        """
        if not isinstance(text, str):
            raise ArgumentError(
                f"`rule` must be a text such as `{LARGER['bosco']}`, got {text!r}"
            )
        known = LARGER.get(text.strip().lower(), text)
        found = _FORM.fullmatch(known.strip())
        if found is None:
            raise ArgumentError(
                f"`{text}` is not a rule of Larger than Life; write it as "
                f"`{LARGER['bosco']}`, or a name ({', '.join(LARGER)})"
            )
        area = _AREAS.get(found["n"].upper())
        if area is None:
            raise ArgumentError(
                f"`{text}`: the neighbourhood `N{found['n']}` is not supported; use NM (a "
                "box), NN (a diamond) or NC (a disc)"
            )
        numbers = {name: int(found[name]) for name in "rcmstbd"}
        return cls(
            numbers["r"],
            (numbers["b"], numbers["d"]),
            (numbers["s"], numbers["t"]),
            max(2, numbers["c"]),
            bool(numbers["m"]),
            area,
        )

    def offsets(self) -> list[tuple[int, int]]:
        """The cells that are counted, seen from a cell, row by row."""
        reach, r = range(-self.radius, self.radius + 1), self.radius
        inside = {
            "box": lambda y, x: True,
            "diamond": lambda y, x: abs(y) + abs(x) <= r,
            "disc": lambda y, x: y * y + x * x <= r * r + r,
        }[self.area]
        return [
            (y, x) for y in reach for x in reach if inside(y, x) and (self.middle or y or x)
        ]

    @property
    def most(self) -> int:
        """The largest count."""
        return len(self.offsets())

    def __str__(self) -> str:
        [letter] = [letter for letter, area in _AREAS.items() if area == self.area]
        states = 0 if self.states == 2 else self.states
        return (
            f"R{self.radius},C{states},M{int(self.middle)},"
            f"S{self.survival[0]}..{self.survival[1]},B{self.birth[0]}..{self.birth[1]},N{letter}"
        )
