"""Rules of Generations: cells that do not survive age through more states."""

import re
from dataclasses import dataclass

from hotgrid.errors import ArgumentError

from ._rule import Neighbourhood, Rule

GENERATIONS = {
    "brian's brain": "B2/S/C3",
    "star wars": "B2/S345/C4",
    "belzhab": "B23/S23/C8",
    "bloomerang": "B34678/S234/C24",
    "frogs": "B34/S12/C3",
    "fireworks": "B13/S2/C21",
}
"""Rules that have a name."""

MOST_STATES = 255
_LETTERED = re.compile(
    r"\s*(?P<rule>[bs].*)/\s*(?:c|g)?(?P<states>\d+)(?P<plus>[vh]?)\s*", re.I
)
_PLAIN = re.compile(r"\s*(?P<rule>[\d]*/[\d]*)/(?P<states>\d+)(?P<plus>[vh]?)\s*", re.I)


@dataclass(frozen=True)
class GenerationsRule:
    """A rule of Life, and the number of states.

    Cells of state 1 are alive and count as neighbours. One that does not survive goes through
    the states 2, 3, ... and is dead, 0, after the last.

    Attributes:
        rule: When a dead cell is born, and a living one survives.
        states: The number of states, at least 2, with which it is a rule of Life.

    Example:
        >>> str(GenerationsRule.parse("345/2/4"))
        'B2/S345/C4'

    Raises:
        ArgumentError: The number of states is not possible.
    """

    rule: Rule
    states: int

    def __post_init__(self) -> None:
        if not 2 <= self.states <= MOST_STATES:
            raise ArgumentError(
                f"a rule of Generations has from 2 to {MOST_STATES} states, got {self.states}"
            )

    @classmethod
    def parse(cls, text: str) -> "GenerationsRule":
        """Read `B2/S345/C4`, `345/2/4` (survival first), or a name.

        Raises:
            ArgumentError: It is not such a rule.
        """
        if not isinstance(text, str):
            raise ArgumentError(f"`rule` must be a text such as `B2/S345/C4`, got {text!r}")
        known = GENERATIONS.get(text.strip().lower(), text)
        found = _LETTERED.fullmatch(known) or _PLAIN.fullmatch(known)
        if found is None:
            names = ", ".join(f"`{name}`" for name in GENERATIONS)
            raise ArgumentError(
                f"`{text}` is not a rule of Generations; write births, survivals and the "
                f"number of states as `B2/S345/C4`, or a name ({names})"
            )
        return cls(Rule.parse(found["rule"] + found["plus"]), int(found["states"]))

    @property
    def neighbourhood(self) -> Neighbourhood:
        """Which cells are counted."""
        return self.rule.neighbourhood

    def __str__(self) -> str:
        plain = str(self.rule)
        suffix = plain[-1] if plain[-1] in "VH" else ""
        return f"{plain.removesuffix(suffix)}/C{self.states}{suffix}"
