"""Collisions by name."""

from collections.abc import Mapping

from hotgrid.errors import ArgumentError, near

from ._central import CentralMoments, Cumulant
from ._collision import Collision
from ._entropic import KBC
from ._rates import BGK, MRT, TRT, Regularized, Smagorinsky

COLLISIONS: Mapping[str, Collision] = {
    "bgk": BGK(),
    "trt": TRT(),
    "mrt": MRT(),
    "central": CentralMoments(),
    "cumulant": Cumulant(),
    "kbc": KBC(),
    "regularized": Regularized(),
    "smagorinsky": Smagorinsky(),
}
"""The collisions by name, with default arguments."""


def find_collision(collision: Collision | str) -> Collision:
    """A collision, or the one with that name.

    Example:
        >>> find_collision("bgk")
        BGK()

    Raises:
        ArgumentError: There is none of this name.
    """
    if isinstance(collision, Collision):
        return collision
    if isinstance(collision, type):
        raise ArgumentError(
            f"`collision` is the class {collision.__name__}; make one: `{collision.__name__}()`"
        )
    if not isinstance(collision, str) or collision.lower() not in COLLISIONS:
        raise ArgumentError(
            f"`collision` {collision!r} is unknown; use one of "
            f"{', '.join(COLLISIONS)}{near(collision, COLLISIONS)}"
        )
    return COLLISIONS[collision.lower()]
