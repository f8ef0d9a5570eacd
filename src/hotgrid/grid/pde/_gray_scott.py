"""Gray-Scott: two substances that react and spread into living patterns."""

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
    window_shape,
)
from hotgrid.grid.pde.schemes import expect_stable, laplacian

_SEEDS = 5


class GrayScott(Model):
    """Food `u` is fed, `v` eats it and breeds, `v` dies; both spread. Explicit Euler.

    du/dt = Du lap(u) - u v^2 + feed (1 - u), dv/dt = Dv lap(v) + u v^2 - (feed + kill) v.
    Periodic, in one, two or three dims; dt and dx are one. The defaults grow coral;
    `feed=0.0367, kill=0.0649` gives spots that divide, `feed=0.026, kill=0.051` turmoil.

    Example:
        >>> sim = Simulation(GrayScott(), size=(64, 64), compiled=False)
        >>> before = sim.observe()["covered"]
        >>> sim.run(200).steps
        200
        >>> sim.observe()["covered"] > before
        True
    """

    fields = (Field("u"), Field("v"))
    ranks = (1, 2, 3)
    windowed = True
    picture = "v"
    diffusion_u = Parameter(0.16, "how fast food spreads", low=0, high=0.5, unit="dx^2/dt")
    diffusion_v = Parameter(0.08, "how fast the eater spreads", low=0, high=0.5, unit="dx^2/dt")
    feed = Parameter(0.0545, "share of missing food that is fed", low=0, high=0.2, unit="1/dt")
    kill = Parameter(0.062, "share of the eater that is removed", low=0, high=0.2, unit="1/dt")

    def check(self, size: tuple[int, ...]) -> None:
        """Refuse a diffusion that is unstable in this number of dims."""
        rank = len(size)
        # Food is fed, and the eater dies, in the step in which they spread.
        expect_stable(self, (2 - self.feed) / (4 * rank), rank, "diffusion_u")
        expect_stable(self, (2 - self.feed - self.kill) / (4 * rank), rank, "diffusion_v")

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """One step of explicit Euler."""
        u, v = state["u"], state["v"]
        feed = params["feed"]
        eaten = u.here * v.here * v.here
        fed = feed * (1 - u.here)
        died = (feed + params["kill"]) * v.here
        return {
            "u": u.here + params["diffusion_u"] * laplacian(u) - eaten + fed,
            "v": v.here + params["diffusion_v"] * laplacian(v) + eaten - died,
        }

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """Food everywhere, and a few blocks of the eater at random places."""
        reach = max(2, min(size) // 32)
        axes = torch.meshgrid(*places(size), indexing="ij")
        seeded = torch.zeros(window_shape(size), dtype=torch.bool)
        for _ in range(_SEEDS):
            block = torch.ones_like(seeded)
            for x, n in zip(axes, size, strict=True):
                centre = torch.randint(n, (), generator=generator)
                block &= (x - centre + reach) % n <= 2 * reach
            seeded |= block
        noise = 0.01 * uniform(size, generator)
        u = torch.where(seeded, 0.5 + noise, 1.0)
        return {"u": u, "v": torch.where(seeded, 0.25 + noise, 0.0)}

    @observable(over="sum")
    def food(self, state: State) -> Tensor:
        """All of `u`."""
        return total(state["u"])

    @observable(over="sum")
    def eater(self, state: State) -> Tensor:
        """All of `v`."""
        return total(state["v"])

    @observable(over="mean")
    def covered(self, state: State) -> Tensor:
        """The share of the grid where `v` is above 0.1."""
        return total(state["v"] > 0.1) / state["v"].numel()
