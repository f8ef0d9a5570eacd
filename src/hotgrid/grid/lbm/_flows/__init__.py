"""Ready-made flows, most of them defined by their Reynolds number."""

from ._backward_step import BackwardFacingStep as BackwardFacingStep
from ._body import BodyFlow as BodyFlow
from ._cavity import Cavity as Cavity
from ._channel import Couette as Couette, Poiseuille as Poiseuille
from ._cylinder import CylinderFlow as CylinderFlow, frequency as frequency
from ._double_shear import DoubleShear as DoubleShear
from ._karman import Karman as Karman
from ._phase_separation import PhaseSeparation as PhaseSeparation
from ._porous_medium import PorousMedium as PorousMedium
from ._rayleigh_benard import RayleighBenard as RayleighBenard
from ._reynolds import ReynoldsFlow as ReynoldsFlow
from ._rising_drop import RisingDrop as RisingDrop
from ._schaefer_turek import SchaeferTurek as SchaeferTurek
from ._shan_chen import ShanChen as ShanChen
from ._shear_mixing import ShearMixing as ShearMixing
from ._taylor_green import TaylorGreen as TaylorGreen, TaylorGreen3D as TaylorGreen3D
