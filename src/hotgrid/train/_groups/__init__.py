"""Groups of parameters, each with its optimizer."""

from ._groups import Groups as Groups, groups as groups
from ._table import GroupRow as GroupRow
from ._values import GroupValue as GroupValue
