"""Rules of Life: how many living neighbours give birth, how many keep a cell alive."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from numbers import Integral
from types import MappingProxyType
from typing import Literal, NoReturn

from hotgrid.errors import ArgumentError, near

Neighbourhood = Literal["moore", "von_neumann", "hexagonal"]
"""Which cells around a cell are its neighbours."""

_SUFFIXES: dict[str, Neighbourhood] = {"v": "von_neumann", "h": "hexagonal"}
_SAID = {"moore": "Moore", "von_neumann": "von Neumann", "hexagonal": "hexagonal"}

RULES: Mapping[str, str] = MappingProxyType(
    {
        "life": "B3/S23",
        "highlife": "B36/S23",
        "day and night": "B3678/S34678",
        "seeds": "B2/S",
        "replicator": "B1357/S1357",
        "life without death": "B3/S012345678",
        "maze": "B3/S12345",
        "2x2": "B36/S125",
        "move": "B368/S245",
        "anneal": "B4678/S35678",
        "diamoeba": "B35678/S5678",
    }
)
"""Rules that have a name; a rule may be given by it."""

# The longest beginning that could be a rule: where it ends is where the trouble is.
_FORM = re.compile(
    r"\s*(?P<first>[bs]?)(?P<a>[\d.,]*)\s*(?P<slash>/?)\s*"
    r"(?P<second>[bs]?)(?P<b>[\d.,]*)\s*(?P<plus>[vh]?)\s*",
    re.IGNORECASE,
)
_ITEM = re.compile(r"(\d+)\.\.(\d+)|\d+")


@dataclass(frozen=True)
class Rule:
    """When a cell is born, and when it stays alive, by the number of living neighbours.

    Attributes:
        birth: The counts with which a dead cell is born.
        survival: The counts that keep a living cell alive.
        neighbourhood: `"moore"` counts every cell that touches, `"von_neumann"` only
            those that share a side, `"hexagonal"` all but the upper right and the lower
            left one, which makes hexagons of a square grid.
        rank: The number of space dims.

    Example:
        >>> rule = Rule.parse("23/3")
        >>> str(rule), sorted(rule.survival), rule.most
        ('B3/S23', [2, 3], 8)
        >>> str(Rule(birth=[4], survival=range(5, 8), rank=3))
        'B4/S5..7'

    Raises:
        ArgumentError: A count is not possible in this neighbourhood.
    """

    birth: Collection[int]
    survival: Collection[int]
    neighbourhood: Neighbourhood = "moore"
    rank: int = 2

    def __post_init__(self) -> None:
        words = ("moore", "von_neumann", *["hexagonal"] * (self.rank == 2))
        if self.neighbourhood not in words:
            raise ArgumentError(
                f"`neighbourhood` {self.neighbourhood!r} is unknown; use "
                f"{' or '.join(words)}{near(self.neighbourhood, words)}"
            )
        for name in ("birth", "survival"):
            given = getattr(self, name)
            listed = isinstance(given, Iterable) and not isinstance(given, str)
            if not listed or not all(isinstance(n, Integral) for n in given):
                raise ArgumentError(
                    f"`{name}` must be counts of neighbours, such as [2, 3], got {given!r}"
                )
            counts = frozenset(map(int, given))
            for n in sorted(counts):
                if not 0 <= n <= self.most:
                    raise ArgumentError(
                        f"`{name}` has the count {n}, but a cell has {self.around}"
                    )
            object.__setattr__(self, name, counts)

    @classmethod
    def parse(
        cls, text: str, rank: int = 2, neighbourhood: Neighbourhood | None = None
    ) -> "Rule":
        """Read a rule: `B3/S23`, `b3s23`, `23/3` (survival first), or a name of `RULES`.

        A `V` at the end means the von Neumann neighbourhood, an `H` hexagons. Counts may be
        written as ranges, `S5..7`; in three dims they are separated by commas, `B4,6`.

        Arguments:
            text: The rule.
            rank: The number of space dims.
            neighbourhood: The neighbourhood, if the text does not give it.

        Raises:
            ArgumentError: It is not a rule; the message shows the place.
        """
        return _parsed(text, rank, neighbourhood)

    @property
    def most(self) -> int:
        """The number of neighbours of a cell."""
        if self.neighbourhood == "hexagonal":
            return 6
        return 3**self.rank - 1 if self.neighbourhood == "moore" else 2 * self.rank

    def offsets(self) -> list[tuple[int, ...]]:
        """Where the neighbours are, seen from a cell."""
        near_by = product((-1, 0, 1), repeat=self.rank)
        reach = 1 if self.neighbourhood == "von_neumann" else self.rank
        found = [offset for offset in near_by if 0 < sum(map(abs, offset)) <= reach]
        return [o for o in found if self.neighbourhood != "hexagonal" or sum(o) or o[0] == 0]

    def mask(self, alive: bool) -> int:
        """The rule for living or for dead cells in bits: bit n is set if n leads to life."""
        return sum(1 << n for n in (self.survival if alive else self.birth))

    def __str__(self) -> str:
        written = _digits if self.rank == 2 else _ranges
        suffix = {kind: letter for letter, kind in _SUFFIXES.items()}.get(
            self.neighbourhood, ""
        )
        return f"B{written(self.birth)}/S{written(self.survival)}{suffix.upper()}"

    @property
    def around(self) -> str:
        """The neighbourhood as text."""
        kind = _SAID[self.neighbourhood]
        return f"{self.most} neighbours in the {kind} neighbourhood of {self.rank} dims"

    def table(self) -> tuple[bool, ...]:
        """In two dims, the next cell for each of the 512 windows of 3 x 3 cells.

        Bit `3 y + x` of the place is a cell, the upper left one the lowest.
        """
        bits = sum(1 << 3 * (1 + y) + 1 + x for y, x in self.offsets())
        sets = (self.birth, self.survival)
        return tuple((w & bits).bit_count() in sets[w >> 4 & 1] for w in range(512))


def _digits(counts: Iterable[int]) -> str:
    return "".join(map(str, sorted(counts)))


def _ranges(counts: Iterable[int]) -> str:
    """Counts with runs of three and more drawn together: `2,5..8`."""
    runs: list[list[int]] = []
    for n in sorted(counts):
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return ",".join(
        f"{run[0]}..{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs
    )


def _parsed(text: str, rank: int, neighbourhood: Neighbourhood | None) -> Rule:
    if not isinstance(text, str):
        raise ArgumentError(
            f"`rule` must be a text such as `B3/S23`, a name of it, or a Rule, got {text!r}"
        )
    text = RULES.get(text.strip().lower(), text)
    found = _FORM.match(text)
    assert found is not None  # noqa: S101  every part of the form may be empty
    if found.end() < len(text):
        expected = "a count or the end" if found["slash"] else "`B`, `S`, a count or `/`"
        _refuse(text, found.end(), f"expected {expected} here")
    letters = (found["first"] + found["second"]).lower()
    if letters not in ("bs", "sb", "") or not (letters or found["slash"]):
        _refuse(text, len(text.rstrip()), "expected both `B` and `S`, once each")
    says = _SUFFIXES.get(found["plus"].lower())
    if says and neighbourhood and says != neighbourhood:
        raise ArgumentError(
            f"the rule `{text}` ends in {found['plus'].upper()}, but `neighbourhood` is "
            f"{neighbourhood!r}"
        )
    kind = neighbourhood or says or "moore"
    blank = Rule((), (), kind, rank)
    parts = [frozenset(_counts(text, found, part, blank)) for part in ("a", "b")]
    # Without letters the survival comes first.
    survival, birth = parts if letters in ("sb", "") else reversed(parts)
    return Rule(birth, survival, kind, rank)


def _counts(text: str, found: re.Match[str], part: str, rule: Rule) -> Iterator[int]:
    at, end = found.span(part)
    more = at < end
    while more:
        item = _ITEM.match(text, at, end)
        if item is None:
            _refuse(text, at, "expected a count here")
        # In two dims a count is one digit, and digits are not separated.
        digits = rule.rank == 2 and not item[1]
        spans = [(i, i + 1) for i in range(*item.span())] if digits else [item.span()]
        if item[1]:
            spans = [item.span(1), item.span(2)]
        numbers = [int(text[slice(*span)]) for span in spans]
        for n, (column, _) in zip(numbers, spans, strict=True):
            if n > rule.most:
                hint = "" if rule.rank == 2 else "; separate counts by commas, as in `B4,6`"
                _refuse(text, column, f"{n} is too many: a cell has {rule.around}{hint}")
        if item[1] and numbers[0] > numbers[1]:
            _refuse(text, at, f"the range goes down; write `{numbers[1]}..{numbers[0]}`")
        yield from range(numbers[0], numbers[1] + 1) if item[1] else numbers
        at = item.end()
        more = at < end
        if more and text[at] != ",":
            _refuse(text, at, "expected `,` here")
        at += 1


def _refuse(text: str, column: int, reason: str) -> NoReturn:
    hint = near(text.strip(), RULES)
    raise ArgumentError(
        f"`{text}` is not a rule: {reason}\n  {text}\n  {' ' * column}^\n"
        f"write births and survivals as `B3/S23`, or a name{hint}"
    )
