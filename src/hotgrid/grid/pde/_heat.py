"""Heat: the smallest model, and the one to copy from."""

import math
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
    drawn,
    observable,
    places,
    total,
)

from ._schemes import expect_stable, laplacian


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
        """Refuse a rate that is unstable in so many dims."""
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
        """Hot cells, scattered at random; at least one."""
        found = []

        def hot(shape: tuple[int, ...]) -> Tensor:
            some = torch.rand(shape, generator=generator) > 0.95
            found.append(bool(some.any()))
            return some

        u = drawn(size, hot).float()
        if not any(found):
            middle = torch.unravel_index(torch.tensor(math.prod(size) // 2), tuple(size))
            here = [
                (x == at).nonzero()[:, 0] for x, at in zip(places(size), middle, strict=True)
            ]
            u[torch.meshgrid(*here, indexing="ij")] = 1
        return {"u": u}

    @observable(over="sum")
    def heat(self, state: State) -> Tensor:
        """The heat of the whole grid; nothing is lost."""
        return total(state["u"])
