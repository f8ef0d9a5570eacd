"""Cavity: a box of fluid whose lid slides."""

from hotgrid.grid.lbm._boundary import FACES, Wall
from hotgrid.grid.lbm._collision import Collision
from hotgrid.grid.lbm._lattice import D2Q9, Lattice, find_lattice

from ._reynolds import ReynoldsFlow


class Cavity(ReynoldsFlow):
    """A box of fluid whose lid, at `y+`, slides along x; the other walls are at rest.

    Walls are half a cell outside of the grid, so a size of `(n, n)` is a box of n cells.

    Arguments:
        lattice: The velocities, or their name; `D3Q19` or `D3Q27` for a box in 3-D.
        collision: How populations relax, or its name.
        reynolds: Velocity times width over viscosity.
        velocity: Velocity of the lid in cells per step.

    Example:
        >>> from hotgrid.grid import Simulation, lbm
        >>> sim = Simulation(lbm.Cavity(reynolds=100), size=(32, 32), compiled=False)
        >>> sim.run(10).steps
        10

    Raises:
        ArgumentError: A parameter is out of bounds.
    """

    def __init__(
        self,
        lattice: Lattice | str = D2Q9,
        collision: Collision | str = "trt",
        **parameters: float,
    ) -> None:
        lattice = find_lattice(lattice)
        slide = (*[0.0] * (lattice.rank - 1), "velocity")
        # The lid comes first: in its corners the walls at rest win.
        still = [face for face in FACES[: 2 * lattice.rank] if face != "y+"]
        super().__init__(
            lattice=lattice,
            collision=collision,
            boundaries=(Wall("y+", velocity=slide), *[Wall(face) for face in still]),
            parameters=parameters,
        )

    def length(self, size: tuple[int, ...]) -> float:
        """The width of the lid in cells."""
        return size[-1]
