"""Rules as text: births, survivals, and the bounds of the grid."""

from ._any_rule import (
    AnyRule as AnyRule,
    parse_rule as parse_rule,
    states_of as states_of,
)
from ._bounds import (
    TOPOLOGIES as TOPOLOGIES,
    Bounds as Bounds,
    Topology as Topology,
    parted as parted,
)
from ._generations_rule import GenerationsRule as GenerationsRule
from ._isotropic_rule import IsotropicRule as IsotropicRule
from ._larger_rule import LargerRule as LargerRule
from ._rule import RULES as RULES, Neighbourhood as Neighbourhood, Rule as Rule
