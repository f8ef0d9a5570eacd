"""BackwardFacingStep: a channel that widens at once."""

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.lbm._boundary import ExtrapolationOutlet, HalfWay, Wall, ZouHeVelocity
from hotgrid.grid.lbm._collision import Collision
from hotgrid.grid.model import Parameter, State, observable, places, window_shape

from ._reynolds import ReynoldsFlow

# What part of a density above one the outlet removes in a step, times the length.
_HOLD = 2.0


class BackwardFacingStep(ReynoldsFlow):
    """A channel that becomes twice as high behind a step, in 2-D.

    The fluid comes in at `x-` above the step with a parabola, goes round an eddy behind
    it, and leaves at `x+`. The length of the eddy is the known result. The grid is as high
    as the wide channel; make it at least twelve times as long for a Reynolds number
    of 200, and longer above.

    Arguments:
        collision: How populations relax, or its name.
        reynolds: Mean velocity above the step times twice the height there over viscosity.
        velocity: Peak velocity of the parabola in cells per step.
        entry: Length of the step over its height.

    Example:
        >>> from hotgrid.grid import Simulation, lbm
        >>> sim = Simulation(lbm.BackwardFacingStep(), size=(16, 96), compiled=False)
        >>> sim.run(10).steps
        10

    Raises:
        ArgumentError: A parameter is out of bounds, or the grid too small for the step.
    """

    windowed = True
    reynolds = Parameter(200.0, "mean velocity times twice the height over viscosity", above=0)
    entry = Parameter(2.0, "length of the step over its height", low=0.5)

    def __init__(self, collision: Collision | str = "trt", **parameters: float) -> None:
        super().__init__(
            collision=collision,
            boundaries=(
                HalfWay(self.step_cells),
                ExtrapolationOutlet("x+", hold="hold"),
                Wall("y-"),
                Wall("y+"),
                ZouHeVelocity("x-", velocity=(0, "velocity"), profile=self.profile),
            ),
            parameters=parameters,
        )
        self.size = (64, 768)

    def length(self, size: tuple[int, ...]) -> float:
        """Twice the height of the inlet times mean over peak velocity, in cells."""
        return 4 / 3 * (size[0] - size[0] // 2)

    def of_grid(self, size: tuple[int, ...]) -> dict[str, float]:
        """The length, and how firmly the outlet holds the density."""
        return {**super().of_grid(size), "hold": _HOLD / size[1]}

    def edge(self, size: tuple[int, ...]) -> int:
        """The first column behind the step."""
        return round(self.entry * (size[0] // 2))

    def step_cells(self, size: tuple[int, ...]) -> Tensor:
        """Where the step is, bool `[y, x]`.

        Raises:
            ArgumentError: The step is lower than 4 cells, or leaves no channel behind it.
        """
        edge = self.edge(size)
        if size[0] < 8 or edge + size[0] > size[1]:
            raise ArgumentError(
                f"on a grid of {size} the step is {size[0] // 2} cells high and {edge} long; "
                f"it needs 4 cells of height, and {size[0]} of channel behind it: take a "
                "larger `size`"
            )
        found = torch.zeros(size, dtype=torch.bool)
        found[: size[0] // 2, :edge] = True
        return found

    def profile(self, size: tuple[int, ...]) -> Tensor:
        """The velocity of the inlet over its peak, float64 `[y, x]`."""
        low = size[0] // 2
        y = (places(size, torch.float64)[0] - low + 0.5) / (size[0] - low)
        return (4 * y * (1 - y)).clamp(min=0).unsqueeze(1).expand(window_shape(size))

    def begin(
        self, size: tuple[int, ...], generator: torch.Generator
    ) -> tuple[Tensor, list[Tensor]]:
        """The parabola above the step all along, which widens behind it."""
        rows, columns = places(size, torch.float64)
        y = (rows + 0.5) / size[0]
        wide = (2 * y * (1 - y)).unsqueeze(1).expand(window_shape(size))
        behind = columns >= self.edge(size)
        along = self.velocity * torch.where(behind, wide, self.profile(size))
        return torch.ones_like(along), [torch.zeros_like(along), along]

    @observable
    def reattachment(self, state: State) -> Tensor:
        """How far behind the step the eddy ends, over its height; 0 where there is none."""
        along = self.velocities(state)[1]
        size = tuple(along.shape)
        u = along[0, self.edge(size) :].double()
        ends = (u[:-1] < 0) & (u[1:] >= 0)
        place = ends.int().argmax()
        before, after = u[place], u[place + 1]
        share = before / torch.where(ends.any(), before - after, 1.0)
        return torch.where(ends.any(), (place + 0.5 + share) / (size[0] // 2), 0.0)
