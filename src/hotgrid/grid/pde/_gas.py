"""Gas: the compressible Euler equations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from hotgrid.grid.model import (
    Brush,
    Field,
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
from hotgrid.grid.pde.schemes import Cell, Law, conserved_change, fastest

_NAMES = ("rho", "mx", "my", "energy")
_EMPTY = 1e-6


@dataclass(frozen=True)
class _Euler(Law):
    """Density, the velocities along x and y, and pressure."""

    gamma: Tensor

    def plain(self, conserved: Cell) -> Cell:
        rho, mx, my, energy = conserved
        rho = rho.clamp(min=_EMPTY)
        u, v = mx / rho, my / rho
        inner = energy - 0.5 * (mx * u + my * v)
        return [rho, u, v, ((self.gamma - 1) * inner).clamp(min=_EMPTY)]

    def rate(self, plain: Cell, slope: Cell, dim: int) -> Cell:
        (rho, *u, p), (d_rho, *du, dp) = plain, slope
        own = 1 - dim
        rates = [-(u[own] * d) for d in du]
        rates[own] = rates[own] - dp / rho
        squeezed = du[own]
        return [
            -(u[own] * d_rho + rho * squeezed),
            *rates,
            -(u[own] * dp + self.gamma * p * squeezed),
        ]

    def flux(self, left: Cell, right: Cell, dim: int) -> Cell:
        """With three waves, after Toro, Spruce and Speares 1994 (HLLC)."""
        own = 1 - dim
        a, b = (self._side(cell, own) for cell in (left, right))
        slow, fast = fastest((a.u, a.sound), (b.u, b.sound))
        # The mass that outer waves take up: never positive on the left, never negative on
        # the right.
        taken, given = a.rho * (slow - a.u), b.rho * (fast - b.u)
        middle = (b.p - a.p + taken * a.u - given * b.u) / (taken - given)
        forth = middle > 0
        rho, u, across, p, energy, _ = (
            torch.where(forth, x, y) for x, y in zip(a, b, strict=True)
        )
        outer = torch.where(forth, slow, fast)
        # Nothing is between the waves of a face that the outer one has passed.
        wave = torch.where(forth, slow.clamp(max=0), fast.clamp(min=0))
        flow, gap = rho * u, outer - u
        squeezed = rho * gap / (outer - middle)
        lifted = energy + (middle - u) * (rho * middle + p / gap)
        mass = flow + wave * (squeezed - rho)
        push = flow * u + p + wave * (squeezed * middle - flow)
        power = (energy + p) * u + wave * (squeezed * lifted / rho - energy)
        flows = [push, mass * across] if own == 0 else [mass * across, push]
        return [mass, *flows, power]

    def _side(self, plain: Cell, own: int) -> "_Side":
        rho, *velocity, p = plain
        rho, p = rho.clamp(min=_EMPTY), p.clamp(min=_EMPTY)
        u, across = velocity[own], velocity[1 - own]
        energy = p / (self.gamma - 1) + 0.5 * rho * (u * u + across * across)
        return _Side(rho, u, across, p, energy, (self.gamma * p / rho).sqrt())


class _Side(NamedTuple):
    """The gas on one side of a face: `u` is through it, `across` along it."""

    rho: Tensor
    u: Tensor
    across: Tensor
    p: Tensor
    energy: Tensor
    sound: Tensor


class Gas(Model):
    """A gas without viscosity: density `rho`, momenta `mx` and `my`, energy `energy`.

    Euler's equations, by MUSCL-Hancock with the three waves of HLLC: second order where
    it is smooth, and shocks at the right speed. Periodic; x is the last dim and dx is one.
    `dt` times the largest speed, that of sound included, must stay below 1/2.

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
    windowed = True
    picture = "rho"
    gamma = Parameter(1.4, "ratio of specific heats", above=1, high=3)
    dt = Parameter(0.1, "time of a step", above=0, high=1)

    @property
    def time_step(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The time of a step."""
        return self.dt

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """The flow in minus the flow out."""
        law = _Euler(params["gamma"])
        gains = conserved_change(law, [state[name] for name in _NAMES], params["dt"])
        return {name: state[name].here + gain for name, gain in zip(_NAMES, gains, strict=True)}

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """A heavy stream between two light ones, in opposite directions, slightly disturbed."""
        y, x = ((x + 0.5) / n for x, n in zip(places(size, torch.float64), size, strict=True))
        y, cells = y[:, None], window_shape(size)
        phase = torch.rand((), generator=generator, dtype=torch.float64)
        inside = (torch.tanh((y - 0.25) / 0.02) - torch.tanh((y - 0.75) / 0.02)) / 2
        rho = (1 + inside).expand(cells)
        vx = (inside - 0.5).expand(cells)
        bump = torch.exp(-((y - 0.25) ** 2) / 0.005) + torch.exp(-((y - 0.75) ** 2) / 0.005)
        vy = 0.05 * torch.sin(4 * torch.pi * (x + phase)) * bump
        moving = 0.5 * rho * (vx * vx + vy * vy)
        energy = 2.5 / (self.parameters["gamma"] - 1) + moving
        return {"rho": rho.contiguous(), "mx": rho * vx, "my": rho * vy, "energy": energy}

    def brushes(self) -> Sequence[Brush]:
        """Density, energy and momenta, within what a step bears."""
        return (
            Brush("rho", "Density", low=0.5, high=2, value=2),
            Brush("energy", "Energy", low=4, high=10, value=10),
            Brush("mx", "Momentum along x", low=-1),
            Brush("my", "Momentum along y", low=-1),
        )

    @view
    def pressure(self, state: State) -> Tensor:
        """The pressure, `[*space]`."""
        rho, mx, my, energy = (state[name] for name in ("rho", "mx", "my", "energy"))
        moving = 0.5 * (mx * mx + my * my) / rho.clamp(min=_EMPTY)
        return (self.parameters["gamma"] - 1) * (energy - moving)

    @observable(over="sum")
    def mass(self, state: State) -> Tensor:
        """All gas; nothing is lost."""
        return total(state["rho"])

    @observable(over="sum")
    def all_energy(self, state: State) -> Tensor:
        """All energy; nothing is lost."""
        return total(state["energy"])
