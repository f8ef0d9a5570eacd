"""Units: from metres and seconds to cells and steps, and back."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hotgrid.errors import ArgumentError, near
from hotgrid.grid.model import Parameter

from ._observed import SOUND

# Powers of length, time and mass.
_KINDS: Mapping[str, tuple[int, int, int]] = {
    "length": (1, 0, 0),
    "time": (0, 1, 0),
    "velocity": (1, -1, 0),
    "acceleration": (1, -2, 0),
    "frequency": (0, -1, 0),
    "vorticity": (0, -1, 0),
    "viscosity": (2, -1, 0),
    "density": (-3, 0, 1),
    "pressure": (-1, -2, 1),
    "force_density": (-2, -2, 1),
    "force_per_depth": (0, -2, 1),
    "force": (1, -2, 1),
}


@dataclass(frozen=True)
class Units:
    """The size of a cell and a step in metres and seconds, for a flow with given numbers.

    Attributes:
        length: A length in the world, in metres.
        cells: The same length in cells.
        velocity: A velocity in the world, in metres per second.
        viscosity: The kinematic viscosity in the world, in square metres per second.
        lattice_velocity: What `velocity` is to be in cells per step. Smaller is more
            accurate and takes more steps.
        density: The density in the world, in kilograms per cubic metre.

    Example:
        >>> air = Units(length=0.1, cells=50, velocity=0.3, viscosity=1.5e-5, density=1.2)
        >>> round(air.reynolds), round(air.tau, 4)
        (2000, 0.5075)
        >>> air.to_world(100, "time")
        0.06666666666666668

    Raises:
        ArgumentError: A number is not above 0.
    """

    length: float
    cells: float
    velocity: float
    viscosity: float
    lattice_velocity: float = 0.1
    density: float = 1.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            Parameter(1.0, above=0).checked(name, value)
        if self.mach > 0.3:
            warnings.warn(
                f"the Mach number is {self.mach:.2f}: above 0.3 the fluid is compressed; "
                f"take a smaller `lattice_velocity` than {self.lattice_velocity:g}",
                stacklevel=3,
            )
        if not 0.505 <= self.tau <= 2:
            way = (
                "near 0.5 the flow may become unstable: use more `cells` or a larger "
                "`lattice_velocity`"
                if self.tau < 1
                else "above 2 the flow is inaccurate: take a smaller `lattice_velocity`"
            )
            warnings.warn(f"the relaxation time is {self.tau:.4f}; {way}", stacklevel=3)

    @property
    def cell(self) -> float:
        """The width of a cell in metres."""
        return self.length / self.cells

    @property
    def step(self) -> float:
        """The time of a step in seconds."""
        return self.cell * self.lattice_velocity / self.velocity

    @property
    def reynolds(self) -> float:
        """Velocity times length over viscosity."""
        return self.velocity * self.length / self.viscosity

    @property
    def mach(self) -> float:
        """Velocity over the speed of sound of the lattice."""
        return self.lattice_velocity / SOUND

    @property
    def lattice_viscosity(self) -> float:
        """The viscosity in square cells per step: give it to `Flow`."""
        return self.to_lattice(self.viscosity, "viscosity")

    @property
    def tau(self) -> float:
        """The relaxation time."""
        return 3 * self.lattice_viscosity + 0.5

    def to_lattice(self, value: Any, kind: str) -> Any:
        """A quantity of the world in lattice units.

        Arguments:
            value: A number or a tensor, in SI units.
            kind: What it is, such as `"velocity"` or `"pressure"`.

        Raises:
            ArgumentError: The kind is unknown.
        """
        return value / self._unit(kind)

    def to_world(self, value: Any, kind: str) -> Any:
        """A quantity in lattice units in SI units.

        Arguments:
            value: A number or a tensor, in cells, steps and lattice mass.
            kind: What it is, such as `"velocity"` or `"pressure"`.

        Raises:
            ArgumentError: The kind is unknown.
        """
        return value * self._unit(kind)

    def _unit(self, kind: str) -> float:
        if kind not in _KINDS:
            raise ArgumentError(
                f"`kind` {kind!r} is unknown; "
                f"use one of {', '.join(_KINDS)}{near(kind, _KINDS)}"
            )
        length, time, mass = _KINDS[kind]
        return self.cell**length * self.step**time * (self.density * self.cell**3) ** mass
