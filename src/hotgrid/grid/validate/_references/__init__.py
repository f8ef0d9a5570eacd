"""References for comparisons: published tables, exact solutions, another solver."""

from ._profile import interpolated as interpolated
from ._riemann import dam_break as dam_break, shock_tube as shock_tube
from ._spectral import flow_after as flow_after
