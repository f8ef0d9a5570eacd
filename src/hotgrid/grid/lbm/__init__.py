"""lbm: fluids by the lattice-Boltzmann method.

Populations of particles fly from cell to cell along the velocities of a lattice and
collide there; density and momentum then follow the Navier-Stokes equations. `Flow` puts
a fluid together from a lattice, a collision and boundaries; the cases are flows with a
name. Space is `[y, x]` in 2-D and `[z, y, x]` in 3-D, and vectors have their components
in the same order. A part of `hotgrid.grid`.
"""

from ._boundary import (
    Boundary as Boundary,
    Curved as Curved,
    ExtrapolationOutlet as ExtrapolationOutlet,
    Face as Face,
    FreeSlip as FreeSlip,
    FullWay as FullWay,
    HalfWay as HalfWay,
    NonReflectingOutlet as NonReflectingOutlet,
    Number as Number,
    Porous as Porous,
    Shape as Shape,
    Site as Site,
    Solid as Solid,
    Wall as Wall,
    ZouHePressure as ZouHePressure,
    ZouHeVelocity as ZouHeVelocity,
    ball as ball,
    box as box,
    cut_links as cut_links,
    exchanged_momentum as exchanged_momentum,
    from_distance as from_distance,
    from_image as from_image,
    from_mesh as from_mesh,
    icosphere as icosphere,
)
from ._collision import (
    BGK as BGK,
    KBC as KBC,
    MRT as MRT,
    TRT as TRT,
    CentralMoments as CentralMoments,
    Collision as Collision,
    Cumulant as Cumulant,
    Fluid as Fluid,
    Regularized as Regularized,
    Smagorinsky as Smagorinsky,
)
from ._engine import LatticeModel as LatticeModel
from ._flow import Flow as Flow, Start as Start
from ._flows import (
    BackwardFacingStep as BackwardFacingStep,
    BodyFlow as BodyFlow,
    Cavity as Cavity,
    Couette as Couette,
    CylinderFlow as CylinderFlow,
    DoubleShear as DoubleShear,
    Karman as Karman,
    PhaseSeparation as PhaseSeparation,
    Poiseuille as Poiseuille,
    PorousMedium as PorousMedium,
    RayleighBenard as RayleighBenard,
    ReynoldsFlow as ReynoldsFlow,
    RisingDrop as RisingDrop,
    SchaeferTurek as SchaeferTurek,
    ShanChen as ShanChen,
    ShearMixing as ShearMixing,
    TaylorGreen as TaylorGreen,
    TaylorGreen3D as TaylorGreen3D,
    frequency as frequency,
)
from ._lattice import (
    D2Q5 as D2Q5,
    D2Q9 as D2Q9,
    D3Q7 as D3Q7,
    D3Q19 as D3Q19,
    D3Q27 as D3Q27,
    Lattice as Lattice,
)
from ._mixture import TwoComponents as TwoComponents
from ._moments import (
    at_equilibrium as at_equilibrium,
    equilibrium as equilibrium,
    moments as moments,
)
from ._observed import LatticeBoltzmann as LatticeBoltzmann
from ._thermal import (
    ThermalFlow as ThermalFlow,
    ThermalModel as ThermalModel,
    Warmth as Warmth,
)
from ._units import Units as Units
