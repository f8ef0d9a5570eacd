"""FitzHugh-Nagumo: an excitable medium, such as nerves and heart muscle."""

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
    window_shape,
)
from hotgrid.grid.pde.schemes import expect_stable, laplacian


class FitzhughNagumo(Model):
    """Voltage `u` fires and spreads, recovery `v` follows and quenches it. Explicit Euler.

    du/dt = D lap(u) + u (1 - u) (u - threshold) - v, dv/dt = pace (u - decay v). Periodic, in
    one, two or three dims; dx is one. With `pace=0` and no `v`, a front moves at
    sqrt(D / 2) (1 - 2 threshold).

    Example:
        >>> sim = Simulation(FitzhughNagumo(), size=(64, 64), compiled=False)
        >>> sim.run(100).steps
        100
        >>> 0 < sim.observe()["excited"] < 64 * 64
        True
    """

    fields = (Field("u"), Field("v"))
    ranks = (1, 2, 3)
    windowed = True
    picture = "u"
    diffusion = Parameter(0.4, "how fast voltage spreads", low=0, unit="dx^2")
    threshold = Parameter(0.05, "voltage from which a cell fires", low=0, high=0.5)
    pace = Parameter(0.005, "how fast recovery follows", low=0, high=1)
    decay = Parameter(1.0, "how fast recovery fades", low=0, high=10)
    dt = Parameter(0.3, "time of a step", above=0, high=1)

    @property
    def time_step(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The time of a step."""
        return self.dt

    def check(self, size: tuple[int, ...]) -> None:
        """Refuse a step that is unstable in this number of dims, or overshoots in recovery."""
        dt, fading = self.dt, self.pace * self.decay
        if fading:
            expect_stable(self, 1 / fading, len(size), "dt")
        # A cell that fires is drawn back to 1 beside what spreads.
        most = (2 / dt - (1 - self.threshold)) / (4 * len(size))
        expect_stable(self, most, len(size), "diffusion")

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """One step of explicit Euler."""
        u, v = state["u"], state["v"]
        fires = u.here * (1 - u.here) * (u.here - params["threshold"]) - v.here
        recovers = params["pace"] * (u.here - params["decay"] * v.here)
        return {
            "u": u.here + params["dt"] * (params["diffusion"] * laplacian(u) + fires),
            "v": v.here + params["dt"] * recovers,
        }

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """A broken front, which curls up into a spiral."""
        *others, x = places(size)
        x = x - size[-1] // 2
        front, tail = max(2, size[-1] // 16), max(4, size[-1] // 4)
        u = torch.where((x >= 0) & (x < front), 1.0, 0.0).repeat(*window_shape(size)[:-1], 1)
        v = torch.where((x >= front) & (x < tail), 0.2, 0.0).expand(u.shape).contiguous()
        if others:
            u[..., others[-1] < size[-2] // 2, :] = 0
        return {"u": u, "v": v}

    @observable(over="sum")
    def excited(self, state: State) -> Tensor:
        """Cells above half of the voltage of firing."""
        return total(state["u"] > 0.5)
