"""Waves: the linear wave equation by leapfrog."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from hotgrid.grid.model import (
    Field,
    GridWindow,
    Model,
    Neighbours,
    Parameter,
    Planes,
    State,
    observable,
    once,
    places,
    total,
)
from hotgrid.grid.pde.schemes import expect_stable, laplacian


class Wave(Model):
    """Waves travel: d2u/dt2 = c^2 lap(u), leapfrog, second order in space and time.

    Periodic, in one, two or three dims. `u` is the displacement now and `v` what it
    gained in the last step, so `u - v` is the displacement a step ago: leapfrog
    without the difference of nearly equal numbers that costs single precision its
    digits. `courant` is c dt / dx; a step is stable below 1, 0.707 and 0.577.

    Example:
        >>> sim = Simulation(Wave(), size=(64, 64), compiled=False)
        >>> before = sim.observe()["energy"]
        >>> sim.run(100).steps
        100
        >>> abs(sim.observe()["energy"] / before - 1) < 1e-4
        True
    """

    fields = (Field("u"), Field("v"))
    ranks = (1, 2, 3)
    conserved = ("energy", "momentum")
    windowed = True
    picture = "u"
    courant = Parameter(0.5, "cells a wave travels in a step", above=0, high=1)

    def check(self, size: tuple[int, ...]) -> None:
        """Refuse a speed that is unstable in this number of dims."""
        expect_stable(self, 1 / math.sqrt(len(size)), len(size), "courant")

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """One leap: the gain of the next half step, then the displacement."""
        u, v = state["u"], state["v"]
        gain = v.here + params["courant"] ** 2 * laplacian(u)
        return {"u": u.here + gain, "v": gain}

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """A round drop in the middle, at rest."""
        width = max(2.0, min(size) / 16)
        # The Laplacian reads the cells around a window.
        around = size.wider(1) if isinstance(size, GridWindow) else size
        axes = [x - n // 2 for x, n in zip(places(around, torch.float64), size, strict=True)]
        squares = sum(x**2 for x in torch.meshgrid(*axes, indexing="ij"))
        u = torch.exp(-torch.as_tensor(squares) / (2 * width**2))
        # At rest now means that half of the first gain is past: first order otherwise.
        v = -0.5 * self.parameters["courant"] ** 2 * _laplacian_of(u)
        if isinstance(size, GridWindow):
            u, v = (x[(slice(1, -1),) * len(size)] for x in (u, v))
        return {"u": u, "v": v}

    @observable(over="sum")
    def energy(self, state: State) -> Tensor:
        """Kinetic and potential energy, in the form that leapfrog keeps exactly."""
        u, v = state["u"].double(), state["v"].double()
        bent = total((u - v) * self._bent(state))
        return 0.5 * (total(v * v) - self.parameters["courant"] ** 2 * bent)

    @once(reach=1)
    def _bent(self, state: State) -> Tensor:
        return _laplacian_of(state["u"].double())

    @observable(over="sum")
    def momentum(self, state: State) -> Tensor:
        """The gain of the whole grid in a step."""
        return total(state["v"])


def _laplacian_of(u: Tensor) -> Tensor:
    """The Laplacian of a whole periodic plane, without a handle."""
    ends = [torch.roll(u, o, dim) for dim in range(u.ndim) for o in (-1, 1)]
    return torch.stack(ends).sum(0) - 2 * u.ndim * u
