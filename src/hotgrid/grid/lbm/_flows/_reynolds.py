"""Flows defined by their Reynolds number: viscosity follows from velocity and length."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from hotgrid.grid.lbm._observed import LatticeBoltzmann
from hotgrid.grid.model import Parameter


class ReynoldsFlow(LatticeBoltzmann):
    """A flow defined by its Reynolds number, the same at every size of the grid.

    The viscosity is velocity times length over Reynolds number; a case defines its
    length, in cells, for a grid.

    Example:
        >>> class Box(ReynoldsFlow):
        ...     def __init__(self, **parameters):
        ...         super().__init__(parameters=parameters)
        ...     def length(self, size):
        ...         return size[0]
        >>> round(Box(reynolds=60, velocity=0.1).tau((100, 100)), 3)
        1.0
    """

    reynolds = Parameter(100.0, "velocity times length over viscosity", above=0)
    velocity = Parameter(
        0.1,
        "velocity of the flow in cells per step; keep it far below 0.577, the speed of sound",
        above=0,
        high=0.3,
    )

    @abstractmethod
    def length(self, size: tuple[int, ...]) -> float:
        """The length in the Reynolds number, in cells, on a grid."""

    def viscosity_in(self, numbers: Mapping[str, Any]) -> Any:
        """Velocity times length over Reynolds number."""
        return numbers["velocity"] * numbers["length"] / numbers["reynolds"]

    def of_grid(self, size: tuple[int, ...]) -> dict[str, float]:
        """The length on this grid."""
        return {"length": float(self.length(size))}
