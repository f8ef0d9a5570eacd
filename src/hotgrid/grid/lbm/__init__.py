"""lbm: fluids by the lattice-Boltzmann method.

Populations of particles fly from cell to cell along the velocities of a lattice and
collide there; density and momentum then follow the Navier-Stokes equations. `Flow` puts
a fluid together from a lattice, a collision and boundaries; the cases are flows with a
name. Space is `[y, x]` in 2-D and `[z, y, x]` in 3-D, and vectors have their components
in the same order. A part of `hotgrid.grid`.
"""

from ._boundary import (
    Boundary as Boundary,
    Face as Face,
    Number as Number,
    Shape as Shape,
    Site as Site,
)
from ._cavity import Cavity as Cavity
from ._channel import Couette as Couette, Poiseuille as Poiseuille
from ._collision import (
    BGK as BGK,
    TRT as TRT,
    Collision as Collision,
    Regularized as Regularized,
    Smagorinsky as Smagorinsky,
)
from ._curved import Curved as Curved
from ._cylinder import CylinderFlow as CylinderFlow, frequency as frequency
from ._double_shear import DoubleShear as DoubleShear
from ._engine import LatticeModel as LatticeModel
from ._flow import Flow as Flow, Start as Start
from ._forces import cut_links as cut_links, exchanged_momentum as exchanged_momentum
from ._karman import Karman as Karman
from ._lattice import D2Q9 as D2Q9, D3Q19 as D3Q19, D3Q27 as D3Q27, Lattice as Lattice
from ._moments import (
    at_equilibrium as at_equilibrium,
    equilibrium as equilibrium,
    moments as moments,
)
from ._observed import LatticeBoltzmann as LatticeBoltzmann
from ._openings import (
    ExtrapolationOutlet as ExtrapolationOutlet,
    ZouHePressure as ZouHePressure,
    ZouHeVelocity as ZouHeVelocity,
)
from ._reynolds import ReynoldsFlow as ReynoldsFlow
from ._schaefer_turek import SchaeferTurek as SchaeferTurek
from ._solids import (
    Solid as Solid,
    ball as ball,
    box as box,
    from_distance as from_distance,
    from_image as from_image,
)
from ._taylor_green import TaylorGreen as TaylorGreen
from ._units import Units as Units
from ._walls import (
    FreeSlip as FreeSlip,
    FullWay as FullWay,
    HalfWay as HalfWay,
    Wall as Wall,
)
