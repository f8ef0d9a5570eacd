"""BodyFlow: a stream past a body from a mesh."""

from pathlib import Path

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.lbm._boundary import (
    ExtrapolationOutlet,
    FreeSlip,
    HalfWay,
    ZouHeVelocity,
    closed_surface,
    icosphere,
    placed,
)
from hotgrid.grid.lbm._collision import Collision
from hotgrid.grid.lbm._lattice import D3Q19, Lattice
from hotgrid.grid.model import Parameter, State, observable

from ._reynolds import ReynoldsFlow

# What part of a density above one the outlet removes in a step, times the length.
_HOLD = 2.0


class BodyFlow(ReynoldsFlow):
    """A stream along x past a body from an STL file, in 3-D.

    The stream comes in at `x-` with one velocity, leaves at `x+`, and slips along the other
    faces. The middle of the body is a quarter of the way downstream. The axes of the file are
    those of the grid: turn the body in the file.

    Arguments:
        solid: The STL file; None for a ball.
        lattice: The velocities, or their name: `D3Q19` or `D3Q27`.
        collision: How populations relax, or its name.
        reynolds: Velocity times longest side of the body over viscosity.
        velocity: Velocity of the stream in cells per step.
        extent: Longest side of the body over the shorter of height and depth of the grid.

    Example:
        >>> from hotgrid.grid import Simulation, lbm
        >>> sim = Simulation(lbm.BodyFlow(), size=(12, 12, 24), compiled=False)
        >>> sim.run(10).steps
        10
        >>> sim.observe()["drag_coefficient"] > 0
        True

    Raises:
        ArgumentError: A parameter is out of bounds, the file is not a closed surface, or the
            body does not fit into the grid.
        DamagedError: The file cannot be read.
        MissingPartError: A file was given and trimesh is not installed.
    """

    reynolds = Parameter(50.0, "velocity times longest side over viscosity", above=0)
    extent = Parameter(0.4, "longest side of the body over the height of the grid", above=0)

    def __init__(
        self,
        solid: str | Path | None = None,
        lattice: Lattice | str = D3Q19,
        collision: Collision | str = "trt",
        **parameters: float,
    ) -> None:
        super().__init__(
            lattice=lattice,
            collision=collision,
            boundaries=(
                *(FreeSlip(face) for face in ("z-", "z+", "y-", "y+")),
                HalfWay(self.body),
                ZouHeVelocity("x-", velocity=(0, 0, "velocity")),
                ExtrapolationOutlet("x+", hold="hold"),
            ),
            parameters=parameters,
        )
        self.surface = closed_surface(icosphere() if solid is None else solid)
        self.size = (48, 48, 128)

    @classmethod
    def names_file(cls, option: str, value: str) -> bool:
        """A body is in a file."""
        return option == "solid"

    def length(self, size: tuple[int, ...]) -> float:
        """The longest side of the body in cells."""
        return self.extent * min(size[:2])

    def of_grid(self, size: tuple[int, ...]) -> dict[str, float]:
        """The length, and how firmly the outlet holds the density."""
        return {**super().of_grid(size), "hold": _HOLD / size[2]}

    def body(self, size: tuple[int, ...]) -> Tensor:
        """Where the body is, bool `[z, y, x]`.

        Raises:
            ArgumentError: No cell is in the body, or it reaches a face.
        """
        centre = ((size[0] - 1) / 2, (size[1] - 1) / 2, (size[2] - 1) / 4)
        found = placed(self.surface, centre, self.length(size))(size)
        within = found[1:-1, 1:-1, 1:-1].sum()
        if not within or within != found.sum():
            raise ArgumentError(
                f"on a grid of {size} the body is {self.length(size):.1f} cells long and "
                f"{'reaches a face' if found.any() else 'holds no cell'}: take another `size` "
                "or `extent`"
            )
        return found

    def begin(
        self, size: tuple[int, ...], generator: torch.Generator
    ) -> tuple[Tensor, list[Tensor]]:
        """The stream everywhere."""
        rest = torch.zeros(size, dtype=torch.float64)
        return rest + 1, [rest, rest, rest + self.velocity]

    @observable
    def drag_coefficient(self, state: State) -> Tensor:
        """Drag over half the density, velocity squared and the area seen by the stream."""
        solid = self.solid(tuple(state["f"].shape[1:]), state["f"].device)
        area = 0 if solid is None else solid.any(-1).sum()
        return self.drag(state) / (0.5 * self.velocity**2 * area)
