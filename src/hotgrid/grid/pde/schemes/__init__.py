"""Parts that the equations share: differences, fluxes, and limits of stable steps."""

from ._godunov import (
    Cell as Cell,
    Law as Law,
    conserved_change as conserved_change,
    fastest as fastest,
)
from ._laplacian import laplacian as laplacian
from ._offsets import along as along
from ._stability import expect_stable as expect_stable
