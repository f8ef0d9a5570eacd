"""Flows past a cylinder: coefficients of drag and lift, and the Strouhal number."""

from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.lbm._boundary import ball
from hotgrid.grid.model import State, observable, whole_number

from ._reynolds import ReynoldsFlow


class CylinderFlow(ReynoldsFlow):
    """A flow past a cylinder; its length is the diameter."""

    picture = "vorticity"

    @abstractmethod
    def centre(self, size: tuple[int, ...]) -> tuple[float, float]:
        """The middle of the cylinder in cells, `(y, x)`."""

    @property
    def reference_velocity(self) -> float:
        """The velocity in Reynolds number and coefficients."""
        return self.velocity

    def cylinder(self, size: tuple[int, ...]) -> Tensor:
        """Where the cylinder is, bool `[y, x]`.

        Raises:
            ArgumentError: The cylinder is thinner than 4 cells, or leaves the grid.
        """
        diameter = self.length(size)
        y, x = self.centre(size)
        gap = min(y, x, size[0] - 1 - y, size[1] - 1 - x) - diameter / 2
        if diameter < 4 or gap < 2:
            raise ArgumentError(
                f"on a grid of {size} the cylinder of {type(self).__name__} is "
                f"{diameter:.1f} cells thick and {gap:.1f} cells away from the edge; it needs "
                "at least 4 cells, and 2 cells of space: take a larger `size`"
            )
        return ball((y, x), diameter / 2)(size)

    @observable
    def drag_coefficient(self, state: State) -> Tensor:
        """Drag over half the density, velocity squared and diameter."""
        return self.drag(state) / self._scale(state)

    @observable
    def lift_coefficient(self, state: State) -> Tensor:
        """Lift over half the density, velocity squared and diameter."""
        return self.lift(state) / self._scale(state)

    def strouhal(self, lift: Sequence[float], every: int, size: tuple[int, ...]) -> float:
        """Eddies shed in the time in which the flow goes one diameter.

        Arguments:
            lift: Values of the lift, at least three times through its mean upward.
            every: Steps between two of them.
            size: The grid they were taken on.

        Raises:
            ArgumentError: The lift does not oscillate often enough.
        """
        return frequency(lift, every) * self.length(size) / self.reference_velocity

    def _scale(self, state: State) -> Tensor | float:
        return 0.5 * self.reference_velocity**2 * self.length(tuple(state["f"].shape[1:]))


def frequency(history: Sequence[float], every: int = 1) -> float:
    """The oscillations of a signal per step, by its upward crossings of its mean.

    Example:
        >>> import math
        >>> round(frequency([math.sin(0.5 * n) for n in range(100)]) * math.tau, 3)
        0.5

    Raises:
        ArgumentError: It passes upward fewer than three times.
    """
    every = whole_number("every", every, 1)
    try:
        signal = torch.as_tensor(history, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise ArgumentError(f"`history` must be numbers, got {history!r}") from None
    if signal.ndim != 1:
        raise ArgumentError(f"`history` must be a list of numbers, got {history!r}")
    signal = signal - signal.mean()
    rises = ((signal[:-1] < 0) & (signal[1:] >= 0)).nonzero().flatten()
    if len(rises) < 3:
        raise ArgumentError(
            f"the signal rises through its mean {len(rises)} times in {len(signal)} values; "
            "a frequency needs 3: run longer"
        )
    at = rises + signal[rises] / (signal[rises] - signal[rises + 1])
    return (len(rises) - 1) / (float(at[-1] - at[0]) * every)
