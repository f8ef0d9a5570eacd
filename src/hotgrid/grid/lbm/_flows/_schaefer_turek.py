"""SchaeferTurek: the benchmark of flow around a cylinder in a channel."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from hotgrid.grid.lbm._boundary import Curved, ExtrapolationOutlet, Wall, ZouHeVelocity
from hotgrid.grid.lbm._collision import Collision
from hotgrid.grid.model import Parameter, State, observable, places, whole_number, window_shape

from ._cylinder import CylinderFlow

HEIGHT, WIDTH, DIAMETER, MIDDLE = 0.41, 2.2, 0.1, 0.2
_PHYSICAL_VISCOSITY = 1e-3
# Sound that a sudden start makes would go to and fro, between an inlet and an outlet that
# hold velocity and pressure, for longer than eddies need to form.
_HOLD = 2.0


class SchaeferTurek(CylinderFlow):
    """Flow around a cylinder in a channel (Schaefer and Turek 1996), in 2-D.

    The channel is 2.2 long and 0.41 high, the cylinder 0.1 thick with its middle at
    (0.2, 0.2) from the lower left corner, a little below the middle. A parabola comes in
    at `x-` and leaves at `x+`. The cylinder is `Curved`, not built from whole cells. The number
    of rows sets the resolution; `grid(rows)` gives the whole size. A Reynolds number of 20
    is steady (2D-1), at 100 eddies are shed (2D-2).

    Arguments:
        collision: How populations relax, or its name.
        reynolds: Mean velocity times diameter over viscosity.
        velocity: Peak velocity of the parabola in cells per step; the mean is 2/3 of it.

    Example:
        >>> from hotgrid.grid import Simulation, lbm
        >>> size = lbm.SchaeferTurek.grid(41)
        >>> size
        (41, 221)
        >>> sim = Simulation(lbm.SchaeferTurek(reynolds=20), size=size, compiled=False)
        >>> sim.run(2).steps
        2

    Raises:
        ArgumentError: A parameter is out of bounds, or the grid too small for the cylinder.
    """

    windowed = True
    reynolds = Parameter(20.0, "mean velocity times diameter over viscosity", above=0)

    def __init__(self, collision: Collision | str = "trt", **parameters: float) -> None:
        super().__init__(
            collision=collision,
            boundaries=(
                ExtrapolationOutlet("x+", hold="hold"),
                Wall("y-"),
                Wall("y+"),
                Curved(self.surface),
                ZouHeVelocity("x-", velocity=(0, "velocity"), profile=self.parabola),
            ),
            parameters=parameters,
        )
        self.size = self.grid(82)

    @staticmethod
    def grid(rows: int) -> tuple[int, int]:
        """The size of a grid with a number of rows: as long as in the benchmark."""
        rows = whole_number("rows", rows, 1)
        return rows, round(WIDTH / HEIGHT * rows) + 1

    @property
    def reference_velocity(self) -> float:
        """The mean velocity at the inlet."""
        return self.velocity * 2 / 3

    def viscosity_in(self, numbers: Mapping[str, Any]) -> Any:
        """Mean velocity times diameter over Reynolds number."""
        return super().viscosity_in(numbers) * (2 / 3)

    def length(self, size: tuple[int, ...]) -> float:
        """The diameter in cells."""
        return DIAMETER / HEIGHT * size[0]

    def of_grid(self, size: tuple[int, ...]) -> dict[str, float]:
        """The diameter, and how firmly the outlet holds the density."""
        return {**super().of_grid(size), "hold": _HOLD / size[1]}

    def check(self, size: tuple[int, ...]) -> None:
        """Raise `ArgumentError` if the cylinder does not fit."""
        self.cylinder(size)

    def surface(self, size: tuple[int, ...], y: Tensor, x: Tensor) -> Tensor:
        """How far places are from the cylinder, in cells; negative within."""
        at_y, at_x = self.centre(size)
        return torch.hypot(y - at_y, x - at_x) - self.length(size) / 2

    def centre(self, size: tuple[int, ...]) -> tuple[float, float]:
        """The middle of the cylinder in cells, `(y, x)`."""
        cells = size[0] / HEIGHT
        # The walls are half a cell outside of the rows, the inlet on the first column.
        return MIDDLE * cells - 0.5, MIDDLE * cells

    def parabola(self, size: tuple[int, ...]) -> Tensor:
        """The velocity of the empty channel over its peak, `[y, x]`."""
        y = (places(size, torch.float64)[0] + 0.5) / size[0]
        return (4 * y * (1 - y)).unsqueeze(1).expand(window_shape(size))

    def begin(
        self, size: tuple[int, ...], generator: torch.Generator
    ) -> tuple[Tensor, list[Tensor]]:
        """The flow of the empty channel."""
        rest = torch.zeros(window_shape(size), dtype=torch.float64)
        return rest + 1, [rest, self.velocity * self.parabola(size)]

    @observable
    def pressure_difference(self, state: State) -> Tensor:
        """Pressure before the cylinder minus behind it, in the units of the benchmark."""
        pressure = self.pressure(state)
        size = tuple(pressure.shape)
        y, x = self.centre(size)
        reach = self.length(size) / 2
        before = self._at_surface(pressure, y, x - reach, -1)
        behind = self._at_surface(pressure, y, x + reach, 1)
        physical_mean = self.reynolds * _PHYSICAL_VISCOSITY / DIAMETER
        scale = physical_mean**2 / (self.reference_velocity**2 * self._inlet_density(state))
        return (before - behind) * scale

    def _scale(self, state: State) -> Tensor:
        """The scale, with the density at the inlet, where the velocity is given."""
        return super()._scale(state) * self._inlet_density(state)

    def _inlet_density(self, state: State) -> Tensor:
        # Pressure needs density here, and drives it up by some Mach numbers squared.
        return 1 + state["f"][..., 0].sum(0).double().mean()

    def _at_surface(self, pressure: Tensor, y: float, x: float, outward: int) -> Tensor:
        """The pressure at a place, carried on from the two cells outward of it."""
        row, cell = math.floor(y), math.floor(x) if outward < 0 else math.ceil(x)
        below, above = pressure[row : row + 2, [cell, cell + outward]].double()
        near, far = torch.lerp(below, above, y - row)
        return near + (near - far) * abs(cell - x)
