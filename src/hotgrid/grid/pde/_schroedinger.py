"""Schroedinger: a quantum particle in a potential."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from hotgrid.grid.model import (
    Field,
    Input,
    Model,
    Neighbours,
    Parameter,
    Planes,
    State,
    observable,
    places,
    total,
    view,
    window_shape,
)
from hotgrid.grid.pde.schemes import along, expect_stable


class Schroedinger(Model):
    """A wave function: i dpsi/dt = -lap(psi) / 2 + V psi, by Visscher's staggered leapfrog.

    `re` is known at whole steps and `im` half a step later, so that a step is explicit, second
    order and keeps the norm. Periodic, in one or two dims; dx is one. A solid wall with two
    slits is in the way of the first packet; the input `potential` holds it.

    Example:
        >>> sim = Simulation(Schroedinger(), size=(64, 64), compiled=False)
        >>> before = sim.observe()["norm"]
        >>> sim.run(50).steps
        50
        >>> abs(sim.observe()["norm"] / before - 1) < 0.01
        True
    """

    fields = (Field("re"), Field("im"))
    inputs = (Input("potential"),)
    ranks = (1, 2)
    windowed = True
    radius = 2
    picture = "density"
    dt = Parameter(0.2, "time of a step", above=0, high=1)
    wall = 2.0

    @property
    def time_step(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The time of a step."""
        return self.dt

    def check(self, size: tuple[int, ...]) -> None:
        """Refuse a step that is unstable in this number of dims."""
        expect_stable(self, 2 / (2 * len(size) + self.wall), len(size), "dt")

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """The real part of a cell and of its neighbours, then the imaginary part."""
        re, im, potential = state["re"], state["im"], inputs["potential"]
        rank, dt = re.rank, params["dt"]
        beside = [along(rank, dim, by) for dim in range(rank) for by in (-1, 1)]
        here = (0,) * rank

        def real(at: tuple[int, ...]) -> Tensor:
            around = sum(im[tuple(map(sum, zip(at, o, strict=True)))] for o in beside)
            bent = around - 2 * rank * im[at]
            return re[at] + dt * (potential[at] * im[at] - 0.5 * bent)

        now = real(here)
        bent = sum(real(o) for o in beside) - 2 * rank * now
        return {"re": now, "im": im.here - dt * (potential.here * now - 0.5 * bent)}

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """A packet that moves along the last dim."""
        width, turn = min(size) / 10, 0.8
        axes = [x - n // 2 for x, n in zip(places(size, torch.float64), size, strict=True)]
        axes[-1] = axes[-1] + size[-1] // 4
        grid = torch.meshgrid(*axes, indexing="ij")
        squares = torch.stack(grid).square().sum(0)
        hill = torch.exp(-squares / (4 * width**2)) / (width * math.sqrt(math.tau))
        # Half a step later, as the packet turns.
        late = 0.5 * self.parameters["dt"] * (1 - math.cos(turn))
        phase = turn * grid[-1]
        return {"re": hill * torch.cos(phase), "im": hill * torch.sin(phase - late)}

    def static(self, size: tuple[int, ...]) -> dict[str, Tensor]:
        """A wall across the middle; in two dims it has two slits."""
        axes = [x - n // 2 for x, n in zip(places(size), size, strict=True)]
        first, last = axes[0], axes[-1]
        thick = max(1, size[-1] // 64)
        wall = torch.where((last >= 0) & (last < thick), self.wall, 0.0)
        potential = wall.repeat(*window_shape(size)[:-1], 1)
        if len(size) == 2:
            open_, apart = max(1, size[0] // 24), max(2, size[0] // 10)
            for centre in (-apart, apart):
                potential[(first >= centre - open_) & (first < centre + open_)] = 0
        return {"potential": potential}

    @view
    def density(self, state: State) -> Tensor:
        """The probability of a cell, `[*space]`, to first order in a step."""
        return state["re"] * state["re"] + state["im"] * state["im"]

    @observable(over="sum")
    def norm(self, state: State) -> Tensor:
        """The probability of the whole grid, up to the change in half a step."""
        re, im = state["re"].double(), state["im"].double()
        return total(re * re + im * im)
