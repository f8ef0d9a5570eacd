"""Heat: the smallest model, and the one to copy from."""

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
    places,
    total,
    uniform,
)
from hotgrid.grid.pde.schemes import expect_stable, laplacian


class Heat(Model):
    """Heat spreads: du/dt = D lap(u), explicit Euler, second order in space.

    Periodic, in one, two or three dims. `rate` is D dt / dx^2; a step is stable up
    to 1/2, 1/4 and 1/6.

    Example:
        >>> Simulation(Heat(rate=0.4), size=(64,), compiled=False).run(10).steps
        10
    """

    fields = (Field("u"),)
    ranks = (1, 2, 3)
    conserved = ("heat",)
    windowed = True
    rate = Parameter(0.15, "share of the difference that flows in a step", low=0, high=0.5)

    def check(self, size: tuple[int, ...]) -> None:
        """Refuse a rate that is unstable in this number of dims."""
        expect_stable(self, 0.5 / len(size), len(size), "rate")

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """One step of explicit Euler."""
        u = state["u"]
        return {"u": u.here + params["rate"] * laplacian(u)}

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """Hot cells, scattered at random, and one in the middle."""
        axes = torch.meshgrid(*places(size), indexing="ij")
        middle = torch.stack([x == n // 2 for x, n in zip(axes, size, strict=True)]).all(0)
        return {"u": (middle | (uniform(size, generator) > 0.95)).float()}

    @observable(over="sum")
    def heat(self, state: State) -> Tensor:
        """The heat of the whole grid; nothing is lost."""
        return total(state["u"])
