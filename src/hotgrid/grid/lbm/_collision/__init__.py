"""How populations relax."""

from ._central import CentralMoments as CentralMoments, Cumulant as Cumulant
from ._choice import COLLISIONS as COLLISIONS, find_collision as find_collision
from ._collision import (
    Collision as Collision,
    Fluid as Fluid,
    relaxed_pairs as relaxed_pairs,
    stress as stress,
)
from ._entropic import KBC as KBC
from ._rates import (
    BGK as BGK,
    MRT as MRT,
    TRT as TRT,
    Regularized as Regularized,
    Smagorinsky as Smagorinsky,
)
