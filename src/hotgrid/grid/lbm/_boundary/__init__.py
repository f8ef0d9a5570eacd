"""Boundaries: walls, solids, openings, and the forces on them."""

from ._boundary import (
    FACES as FACES,
    MARKS as MARKS,
    Boundary as Boundary,
    Face as Face,
    Number as Number,
    Shape as Shape,
    Site as Site,
    check_vector as check_vector,
    own_name as own_name,
    spread as spread,
)
from ._curved import Curved as Curved
from ._forces import cut_links as cut_links, exchanged_momentum as exchanged_momentum
from ._mesh import (
    closed_surface as closed_surface,
    from_mesh as from_mesh,
    icosphere as icosphere,
    placed as placed,
)
from ._nonreflecting import NonReflectingOutlet as NonReflectingOutlet
from ._openings import (
    ExtrapolationOutlet as ExtrapolationOutlet,
    ZouHePressure as ZouHePressure,
    ZouHeVelocity as ZouHeVelocity,
)
from ._porous import Porous as Porous
from ._solids import (
    Solid as Solid,
    ball as ball,
    box as box,
    from_distance as from_distance,
    from_image as from_image,
)
from ._walls import FreeSlip as FreeSlip, FullWay as FullWay, HalfWay as HalfWay, Wall as Wall
