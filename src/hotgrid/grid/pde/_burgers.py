"""Burgers: the smallest equation that has shocks."""

from collections.abc import Mapping

import torch
from torch import Tensor

from hotgrid.grid.model import (
    Field,
    Model,
    Neighbours,
    Parameter,
    Planes,
    State,
    observable,
    once,
    places,
    total,
    window_shape,
)
from hotgrid.grid.pde.schemes import along, expect_stable, laplacian


class Burgers(Model):
    """A velocity advects itself: du/dt + sum over dims of d(u^2 / 2)/dx = nu lap(u).

    Conservative, with the upwind flux of Engquist and Osher: first order, monotone, shocks
    at the right speed. Periodic, in one or two dims; dx is one. `dt` times the sum of the
    largest speed and twice the viscosity must stay below 1 over the number of dims.

    Example:
        >>> sim = Simulation(Burgers(), size=(256,), compiled=False)
        >>> sim.run(300).steps
        300
        >>> sim.observe()["steepest"] > 1
        True
    """

    fields = (Field("u"),)
    ranks = (1, 2)
    conserved = ("momentum",)
    windowed = True
    viscosity = Parameter(0.05, "how fast velocity spreads", low=0, unit="dx^2/dt")
    dt = Parameter(0.2, "time of a step", above=0, high=1)

    @property
    def time_step(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The time of a step."""
        return self.dt

    def check(self, size: tuple[int, ...]) -> None:
        """Refuse a viscosity that is unstable in this number of dims."""
        most = 0.5 / len(size) / self.parameters["dt"]
        expect_stable(self, most, len(size), "viscosity")

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """One step of explicit Euler: the flow in minus the flow out."""
        u = state["u"]
        change = params["viscosity"] * laplacian(u)
        for dim in range(u.rank):
            before, after = u[along(u.rank, dim, -1)], u[along(u.rank, dim, 1)]
            change = change + _flux(before, u.here) - _flux(u.here, after)
        return {"u": u.here + params["dt"] * change}

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """A sine along every dim, with a random phase, around a slow drift."""
        u = torch.zeros(window_shape(size), dtype=torch.float64)
        for dim, (n, x) in enumerate(zip(size, places(size, torch.float64), strict=True)):
            shape = [-1 if each == dim else 1 for each in range(len(size))]
            phase = torch.rand((), generator=generator, dtype=torch.float64)
            u = u + torch.sin(2 * torch.pi * (x.view(shape) / n + phase))
        return {"u": 0.3 + u / len(size)}

    @observable(over="sum")
    def momentum(self, state: State) -> Tensor:
        """The velocity of the whole grid; shocks do not change it."""
        return total(state["u"])

    @observable(over="max")
    def steepest(self, state: State) -> Tensor:
        """The largest difference between two cells along the last dim."""
        return self._rises(state).abs().max()

    @once(reach=1)
    def _rises(self, state: State) -> Tensor:
        return state["u"].roll(-1, -1) - state["u"]


def _flux(left: Tensor, right: Tensor) -> Tensor:
    """The flux from the left cell into the right one: Engquist and Osher 1981."""
    forth, back = left.clamp(min=0), right.clamp(max=0)
    return 0.5 * (forth * forth + back * back)
