"""A rule of any kind, found by how it is written."""

from hotgrid.errors import ArgumentError

from ._generations_rule import GENERATIONS, GenerationsRule
from ._isotropic_rule import ISOTROPIC, IsotropicRule
from ._larger_rule import LARGER, LargerRule
from ._rule import RULES, Rule

AnyRule = Rule | GenerationsRule | IsotropicRule | LargerRule | str
"""A rule that was read; a text names an automaton that has no other rule: `WireWorld`."""
WIREWORLD = "WireWorld"


def parse_rule(text: str) -> AnyRule:
    """Read a rule of Life, Generations, Larger than Life, Hensel's, or `WireWorld`.

    Raises:
        ArgumentError: It is none of them.
    """
    plain = text.strip().lower()
    if plain == WIREWORLD.lower():
        return WIREWORLD
    if plain in RULES:
        return Rule.parse(text)
    if plain in LARGER or plain.startswith("r"):
        return LargerRule.parse(text)
    if plain in GENERATIONS or plain.count("/") == 2:
        return GenerationsRule.parse(text)
    try:
        return Rule.parse(text)
    except ArgumentError:
        # Letters of Hensel's after a count; else the first message says what is wrong.
        if plain not in ISOTROPIC and not set(plain) & set("ceaiknjqrytwz"):
            raise
        return IsotropicRule.parse(text)


def states_of(rule: AnyRule) -> int:
    """The number of states of a cell under a rule."""
    if isinstance(rule, GenerationsRule | LargerRule):
        return rule.states
    return 4 if isinstance(rule, str) else 2
