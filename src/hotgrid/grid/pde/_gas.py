"""Gas: the compressible equations of Euler."""

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
    total,
    view,
)

from ._godunov import Cell, conserved_change

_EMPTY = 1e-6


class Gas(Model):
    """A gas without viscosity: density `rho`, momenta `mx` and `my`, energy `energy`.

    The equations of Euler, by MUSCL-Hancock with the solver of Harten, Lax and van Leer:
    second order where it is smooth, and shocks at the right speed. Periodic; x is the last
    dim and dx is one. `dt` times the largest speed must stay below 1/2.

    Example:
        >>> sim = Simulation(Gas(), size=(32, 32), compiled=False)
        >>> before = sim.observe()["mass"]
        >>> sim.run(20).steps
        20
        >>> abs(sim.observe()["mass"] / before - 1) < 1e-5
        True
    """

    fields = (Field("rho"), Field("mx"), Field("my"), Field("energy"))
    ranks = (2,)
    radius = 2
    conserved = ("mass", "all_energy")
    picture = "rho"
    gamma = Parameter(1.4, "ratio of specific heats", above=1, high=3)
    dt = Parameter(0.1, "time of a step", above=0, high=1)

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """What flows in, less what flows out."""
        gamma = params["gamma"]

        def flux(cell: Cell, dim: int) -> tuple[Cell, Tensor, Tensor]:
            rho, mx, my, energy = cell
            safe = rho.clamp(min=_EMPTY)
            along = mx if dim == 1 else my
            speed = along / safe
            moving = 0.5 * (mx * mx + my * my) / safe
            pressure = ((gamma - 1) * (energy - moving)).clamp(min=_EMPTY)
            flows = [along, mx * speed, my * speed, (energy + pressure) * speed]
            flows[1 if dim == 1 else 2] = flows[1 if dim == 1 else 2] + pressure
            return flows, speed, (gamma * pressure / safe).sqrt()

        names = ("rho", "mx", "my", "energy")
        gains = conserved_change([state[name] for name in names], flux, params["dt"])
        return {name: state[name].here + gain for name, gain in zip(names, gains, strict=True)}

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """A heavy stream between two light ones, in opposite directions, slightly disturbed."""
        y = (torch.arange(size[0], dtype=torch.float64) + 0.5)[:, None] / size[0]
        x = (torch.arange(size[1], dtype=torch.float64) + 0.5) / size[1]
        phase = torch.rand((), generator=generator, dtype=torch.float64)
        inside = (torch.tanh((y - 0.25) / 0.02) - torch.tanh((y - 0.75) / 0.02)) / 2
        rho = (1 + inside).expand(size)
        vx = (inside - 0.5).expand(size)
        bump = torch.exp(-((y - 0.25) ** 2) / 0.005) + torch.exp(-((y - 0.75) ** 2) / 0.005)
        vy = 0.05 * torch.sin(4 * torch.pi * (x + phase)) * bump
        moving = 0.5 * rho * (vx * vx + vy * vy)
        energy = 2.5 / (self.parameters["gamma"] - 1) + moving
        return {"rho": rho.contiguous(), "mx": rho * vx, "my": rho * vy, "energy": energy}

    @view
    def pressure(self, state: State) -> Tensor:
        """The pressure, `[*space]`."""
        rho, mx, my, energy = (state[name] for name in ("rho", "mx", "my", "energy"))
        moving = 0.5 * (mx * mx + my * my) / rho.clamp(min=_EMPTY)
        return (self.parameters["gamma"] - 1) * (energy - moving)

    @observable
    def mass(self, state: State) -> Tensor:
        """All gas; nothing is lost."""
        return total(state["rho"])

    @observable
    def all_energy(self, state: State) -> Tensor:
        """All energy; nothing is lost."""
        return total(state["energy"])
