"""pde: partial differential equations on the grid, one file each."""

from ._advection import Advection as Advection
from ._burgers import Burgers as Burgers
from ._cahn_hilliard import CahnHilliard as CahnHilliard
from ._fitzhugh_nagumo import FitzhughNagumo as FitzhughNagumo
from ._gas import Gas as Gas
from ._gray_scott import GrayScott as GrayScott
from ._heat import Heat as Heat
from ._ising import Ising as Ising
from ._maxwell import Maxwell as Maxwell
from ._schroedinger import Schroedinger as Schroedinger
from ._shallow_water import ShallowWater as ShallowWater
from ._spectral import (
    KuramotoSivashinsky as KuramotoSivashinsky,
    NavierStokes as NavierStokes,
    SplitSchroedinger as SplitSchroedinger,
    Vorticity as Vorticity,
)
from ._wave import Wave as Wave
from .schemes import laplacian as laplacian
